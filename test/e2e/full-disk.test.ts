import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../src/lib/env.js";
import { createSandbox } from "../../src/sandbox/create-sandbox.js";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import { LABELS } from "../../src/sandbox/labels.js";
import { sandboxFrom } from "../../src/sandbox/sandbox.js";
import { BrigClient } from "../../src/services/serve/client/brig-client.js";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type HarmedEngine, harmedEngine } from "../support/engine.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { SmallDisk, whyNoSmallDisk } from "../support/small-disk.js";

const MEBIBYTE = 1024 ** 2;
const ENGINE_MEBIBYTES = 64;
const HOME_MEBIBYTES = 8;

if (whyNoSmallDisk !== null) process.stderr.write(`tests with full disks are skipped: ${whyNoSmallDisk}\n`);

const shell = (command: string) => ({ calls: [{ shell_command: { command } }] });

/** A script for `brig run`, in a directory of its own. */
function scripted(folder: string, ...commands: string[]): string[] {
  const file = join(folder, "script.json");
  writeFileSync(file, JSON.stringify({ steps: [...commands.map(shell), { text: "done" }] }));
  return ["--script", file];
}

const eventsOf = (stdout: string): Record<string, unknown>[] =>
  stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));

function sessionLines(home: string): { type: string; payload: Record<string, unknown> }[] {
  const sessions = join(home, "sessions");
  const [file = ""] = readdirSync(sessions, { recursive: true, encoding: "utf8" }).filter((one) =>
    one.endsWith(".jsonl"),
  );
  return eventsOf(readFileSync(join(sessions, file), "utf8")) as ReturnType<typeof sessionLines>;
}

const fullEngine = "an engine whose disk is full [needs root, to mount a small disk]";
describe.skipIf(whyNoSmallDisk !== null)(fullEngine, () => {
  let disk: SmallDisk;
  let harmed: HarmedEngine;
  let home: string;
  let work: string;

  beforeAll(async () => {
    disk = SmallDisk.mount(ENGINE_MEBIBYTES);
    work = join(disk.path, "work");
    mkdirSync(work);
    harmed = await harmedEngine({ images: ["toolbox"], disk: disk.path });
  });
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "brig-home-"));
  });
  afterEach(async () => {
    await disk.makeRoom();
    const labels = [LABELS.session];
    expect(await harmed.engine.listContainers(labels)).toEqual([]);
    expect(await harmed.engine.listVolumes(labels)).toEqual([]);
    expect(
      readdirSync(home).flatMap((name) => (name === "sandboxes" ? readdirSync(join(home, name)) : [])),
    ).toEqual([]);
    rmSync(home, { recursive: true });
  });
  afterAll(async () => {
    await harmed?.[Symbol.asyncDispose]();
    await disk?.[Symbol.asyncDispose]();
  });

  /** What is known of it: the free bytes are those after the failure. */
  const full = () => ({ owner: "engine", path: join(disk.path, "engine") });
  const said = `the disk of the container engine is full: `;
  const image = () => harmed.images.toolbox ?? "";

  const ofTheTest = () => ({
    cwd: work,
    env: { DOCKER_HOST: harmed.endpoint, BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" },
  });
  const run = (args: readonly string[]) => brigHere([...args], ofTheTest());

  async function open(more: object = {}) {
    const environment = readEnvironment({ BRIG_HOME: home, HOME: home });
    const options = { image: image(), workspaceKind: "none", engine: harmed.engine, ...more } as const;
    return sandboxFrom(await createSandbox(options, { environment }));
  }

  it("is to blame if the toolbox cannot be copied, and works again once it has room", async () => {
    await disk.fill({ leavesBytes: 2 * MEBIBYTE });
    const failed = await open().catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "engine.failed", errno: "ENOSPC", disk: full() });
    expect(failed).toMatchObject({ hint: expect.stringContaining("docker system prune") });
    await disk.makeRoom();
    await using sandbox = await open();
    expect((await sandbox.exec(["/.brig/rg", "--version"])).exitCode).toBe(0);
  });

  it("is to blame for a sandbox that cannot start, in the library", async () => {
    await disk.fill();
    const failed = await open().catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: "engine.failed", errno: "ENOSPC", disk: full() });
    const { message, disk: found } = failed as { message: string; disk: { freeBytes: number } };
    expect(message).toContain(`${said}`);
    expect(found.freeBytes).toBeLessThan(MEBIBYTE);
  });

  it("is to blame in brig exec, with --json too", async () => {
    await disk.fill();
    const exec = (...flags: string[]) =>
      run(["exec", ...flags, "--workspace", "none", "--container-image", image(), "--", "/.brig/rg"]);
    const ended = await exec();
    expect(ended).toMatchObject({ exitCode: 125, stdout: "" });
    expect(ended.stderr).toContain(said);
    expect(ended.stderr).toContain("hint: make room for the engine: brig gc");
    const { error } = JSON.parse((await exec("--json")).stdout);
    expect(error).toMatchObject({ code: "engine.failed", disk: full() });
  });

  it("is to blame in the events and in the file of a session", async () => {
    await disk.fill();
    const flags = ["--json", "--container-image", image(), ...scripted(home, "echo hi")];
    const ended = await run(["run", ...flags, "go"]);
    expect(ended.exitCode, ended.stderr).toBe(125);
    const error = {
      code: "engine.failed",
      message: expect.stringContaining(said),
      disk: { ...full(), free_bytes: expect.any(Number) },
    };
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({
      type: "turn.failed",
      error: { ...error, hint: expect.stringContaining("brig gc") },
    });
    const recorded = sessionLines(home).find(({ payload }) => payload.type === "error");
    expect(recorded?.payload).toMatchObject(error);
  });

  it("is to blame in brig serve", async () => {
    await disk.fill();
    const flags = ["--listen", "127.0.0.1:0", "--warm", "0", "--container-image", image()];
    const program = brig(["serve", ...flags], ofTheTest());
    onTestFinished(async () => {
      program.kill("SIGKILL");
      await program;
    });
    let output = "";
    program.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
    });
    await expect.poll(() => output, { timeout: 60_000 }).toMatch(/^token = ".*"$/m);
    const announced = (name: string) => new RegExp(`^${name} = "(.*)"$`, "m").exec(output)?.[1] ?? "";
    const client = new BrigClient({ url: announced("url"), token: announced("token") });
    await expect(client.createSandbox()).rejects.toMatchObject({ code: "engine.failed", disk: full() });
    client.close();
    program.kill("SIGTERM");
    await program;
  });

  const build = async (instruction: string, { bytes = 0 } = {}) => {
    const dockerfile = `FROM ${image()}\n${instruction}\n`;
    const files = [
      { path: "Dockerfile", mode: 0o644, content: Buffer.from(dockerfile) },
      { path: "big", mode: 0o644, content: Buffer.alloc(bytes) },
    ];
    const options = { tag: "brig-test/full-disk:latest", hasNetwork: false };
    return await harmed.engine.buildImage(packTar(files), options).catch((error: unknown) => error);
  };
  /** Fails, and says nothing of a disk. */
  const failing = 'RUN ["/.brig/runner", "no-such-command"]';

  it("is to blame for an image that cannot be built", async () => {
    await disk.fill({ leavesBytes: 12 * MEBIBYTE });
    expect(await build("COPY big /big", { bytes: 8 * MEBIBYTE })).toMatchObject({
      errno: "ENOSPC",
      disk: full(),
    });
  });

  it("is named beside a build's own words if these say nothing of it, but not if it has room", async () => {
    expect(await build(failing)).toMatchObject({ code: "image.build-failed", disk: undefined });
    await disk.fill({ leavesBytes: 4 * MEBIBYTE });
    const failed = await build(failing);
    expect(failed).toMatchObject({ code: "image.build-failed", errno: undefined, disk: full() });
    expect(failed).toMatchObject({
      message: expect.stringMatching(/no-such-command[\s\S]*the disk of the container engine is almost full/),
    });
  });

  it("keeps no changes of a copy-on-write workspace from being stored", async () => {
    await using sandbox = await open({ workspaceKind: "overlay", workspace: work });
    await sandbox.files.write(join(work, "a"), "one");
    await disk.fill();
    await expect(sandbox.files.write(join(work, "b"), Buffer.alloc(MEBIBYTE))).rejects.toMatchObject({
      errno: "ENOSPC",
    });
    const snapshot = await sandbox.snapshot();
    await sandbox.close();
    await disk.makeRoom();
    await using again = await open({ workspaceKind: undefined, from: snapshot.id });
    expect(String(await again.files.read(join(work, "a")))).toBe("one");
  });
});

const fullHome = "a full disk with $BRIG_HOME [needs root, to mount a small disk]";
describe.skipIf(whyNoSmallDisk !== null)(fullHome, () => {
  let disk: SmallDisk;

  beforeEach(() => {
    disk = SmallDisk.mount(HOME_MEBIBYTES);
  });
  afterEach(async () => {
    await disk[Symbol.asyncDispose]();
  });

  async function run(args: readonly string[], { temporary = tmpdir() } = {}) {
    const work = await temporaryDirectory();
    onTestFinished(() => work[Symbol.asyncDispose]());
    const env = { BRIG_HOME: disk.path, CODEX_HOME: disk.path, OPENAI_API_KEY: "", TMPDIR: temporary };
    return { work: work.path, ended: await brig([...args], { cwd: work.path, env }) };
  }

  const rest = (directory: string) =>
    readdirSync(join(disk.path, directory), { recursive: true, encoding: "utf8" });

  it("keeps no command from running, and leaves no half record of its sandbox", async () => {
    await disk.fill();
    const { ended } = await run(["exec", "--", "echo", "hi"]);
    expect(ended).toMatchObject({ exitCode: 0, stdout: "hi\n" });
    expect(ended.stderr).toContain(
      `the sandbox cannot be recorded in "${disk.path}": no space left on the device`,
    );
    expect(rest("sandboxes")).toEqual([]);
  });

  it("is to blame if no session file can be begun", async () => {
    const folder = await temporaryDirectory();
    onTestFinished(() => folder[Symbol.asyncDispose]());
    await disk.fill();
    const { ended } = await run(["run", "--json", ...scripted(folder.path, "echo hi"), "go"]);
    expect(ended.exitCode).toBe(2);
    expect(eventsOf(ended.stdout).at(-1)).toMatchObject({
      type: "error",
      code: "session.invalid",
      hint: expect.stringMatching(/^make room there/),
      disk: { owner: "brig", path: expect.stringContaining(disk.path), free_bytes: expect.any(Number) },
    });
    expect(rest("sessions").filter((name) => name.endsWith(".jsonl"))).toEqual([]);
  });

  it("loses no changes of a copy-on-write workspace", async () => {
    const folder = await temporaryDirectory();
    onTestFinished(() => folder[Symbol.asyncDispose]());
    await disk.fill({ leavesBytes: MEBIBYTE });
    const script = scripted(folder.path, `head -c ${2 * MEBIBYTE} /dev/urandom > big; echo kept > small`);
    const place = { temporary: folder.path };
    const { work, ended } = await run(["run", "--workspace", "overlay", ...script, "go"], place);
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stderr).toContain(`cannot be stored in ${disk.path}/snapshots: no space left on the device`);
    const [, home = "", id = ""] = /BRIG_HOME=(\S+) brig apply --id (\S+)/.exec(ended.stderr) ?? [];
    expect(home.startsWith(folder.path)).toBe(true);
    expect(readdirSync(work).filter((name) => !name.startsWith("."))).toEqual([]);
    const applied = await brigHere(["apply", "--id", id], { cwd: work, env: { BRIG_HOME: home } });
    expect(applied.exitCode, applied.stderr).toBe(0);
    expect(readFileSync(join(work, "small"), "utf8")).toBe("kept\n");
    expect(readFileSync(join(work, "big")).length).toBe(2 * MEBIBYTE);
    // Of the lost state only a note is there, that it is elsewhere.
    expect(readdirSync(join(disk.path, "snapshots"))).toEqual([expect.stringMatching(`^\\.rescued\\.${id}`)]);
  });

  it("ends a batch whose results are there, which then goes on by the same command", async () => {
    const folder = await temporaryDirectory();
    onTestFinished(() => folder[Symbol.asyncDispose]());
    const tasks = join(folder.path, "tasks.jsonl");
    writeFileSync(tasks, JSON.stringify({ name: "say", prompt: "say it", check: "grep -qx 42 answer" }));
    const results = join(disk.path, "run");
    const agent = `command:head -c ${MEBIBYTE} /dev/zero > big; echo 42 > answer`;
    const args = ["batch", tasks, "--agent", agent, "-k", "2", "-n", "1", "-o", results, "--json"];
    const home = { BRIG_HOME: folder.path, CODEX_HOME: folder.path };
    const batch = async () => await brigHere(args, { cwd: folder.path, env: home });
    // Room for what the first attempt leaves, and not for that of the second.
    await disk.fill({ leavesBytes: 1.5 * MEBIBYTE });
    const stopped = await batch();
    expect(stopped.exitCode).toBe(125);
    const events = eventsOf(stopped.stdout);
    expect(events.at(-1)).toMatchObject({
      code: "store.failed",
      message: `the results of the batch cannot be written in ${results}: no space left on the device`,
      disk: { owner: "brig", path: results },
    });
    expect(events.filter(({ type }) => type === "attempt.ended").length).toBe(1);
    expect(rest("run").filter((name) => name.endsWith(".tmp"))).toEqual([]);
    await disk.makeRoom();
    const ended = await batch();
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(eventsOf(ended.stdout)[0]).toMatchObject({ attempts: 2, finished: 1 });
  });

  it("is named when there is no other place for changes either", async () => {
    await disk.fill({ leavesBytes: MEBIBYTE / 2 });
    const temporary = join(disk.path, "tmp");
    mkdirSync(temporary);
    const command = ["bash", "-c", `head -c ${MEBIBYTE} /dev/urandom > big`];
    const { ended } = await run(["exec", "--workspace", "overlay", "--", ...command], { temporary });
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr).toContain(`they could not be stored in ${temporary} either, and are lost`);
    expect(ended.stderr).toContain("hint: make room there");
    expect(readdirSync(temporary)).toEqual([]);
  });
});
