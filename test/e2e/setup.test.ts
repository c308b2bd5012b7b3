import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

/** Before a request learns that the connection of `/hold` is still open. */
const CUT_WITHIN_MS = 20_000;
const usual = readFileSync(new URL("../../sandbox-policies/workspace-write.toml", import.meta.url), "utf8");
let folder: TemporaryDirectory;
let seen: string[] = [];
let held: Promise<unknown>[] = [];

const setupServer = createServer((request, response) => {
  seen.push(`setup${request.url}`);
  if (request.url !== "/hold") return response.end("answer\n");
  held.push(once(response, "close"));
  return response.write("holding\n");
});
const runServer = createServer((request, response) => {
  seen.push(`run${request.url}`);
  if (request.url !== "/held") return response.end("answer\n");
  const late = setTimeout(() => response.end("open\n"), CUT_WITHIN_MS);
  return Promise.all(held).then(() => {
    clearTimeout(late);
    response.end("cut\n");
  });
});
let atSetup = "";
let atRun = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  for (const server of [setupServer, runServer]) {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  }
  const hostOf = (server: typeof setupServer) => `host.internal:${(server.address() as AddressInfo).port}`;
  [atSetup, atRun] = [hostOf(setupServer), hostOf(runServer)];
});

beforeEach(() => {
  seen = [];
  held = [];
  for (const name of ["home", "work"]) {
    rmSync(join(folder.path, name), { recursive: true, force: true });
    mkdirSync(join(folder.path, name));
  }
});

afterAll(async () => {
  for (const server of [setupServer, runServer]) {
    server.closeAllConnections();
    server.close();
  }
  await folder[Symbol.asyncDispose]();
});

const inWork = (name: string) => join(folder.path, "work", name);

function ofTheTest() {
  const home = join(folder.path, "home");
  return {
    cwd: join(folder.path, "work"),
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" },
  };
}

const run = (...args: string[]) => brigHere(args, ofTheTest());

const exec = (flags: string[], script: string) => run("exec", ...flags, "--", "bash", "-c", script);
const triesBoth = (name: string) =>
  `for at in ${atSetup} ${atRun}; do curl -s -o /dev/null http://$at/${name}; done; true`;

function policy(name: string, network: string, mayOpen: boolean): string {
  const file = join(folder.path, name);
  const text = usual
    .replace('network = "none"', `network = ${JSON.stringify(network)}`)
    .replace("network = true", `network = ${mayOpen}`);
  writeFileSync(file, text);
  return file;
}

describe("brig exec --setup", () => {
  it("reaches its own list, and the command after it none", async () => {
    const flags = [
      "--setup",
      `${triesBoth("setup")}; echo installed > installed`,
      "--setup-network",
      `allowlist:${atSetup}`,
    ];
    const ended = await exec([...flags, "--json"], `cat installed; ${triesBoth("run")}`);
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(seen).toEqual(["setup/setup"]);
    const { stdout, setup, egress } = JSON.parse(ended.stdout);
    expect(stdout).toBe("installed\n");
    expect(setup).toMatchObject({ exitCode: 0, timedOut: false });
    const places = egress.map((one: Record<string, unknown>) => `${one.phase} ${one.port} ${one.outcome}`);
    const [portOfSetup, portOfRun] = [atSetup, atRun].map((at) => at.split(":")[1]);
    expect(places.sort()).toEqual([
      ...[`run ${portOfSetup} denied`, `run ${portOfRun} denied`].sort(),
      ...[`setup ${portOfSetup} allowed`, `setup ${portOfRun} denied`].sort(),
    ]);
  });

  it("leaves no process and no connection to the command", async () => {
    const left = `curl -s -m 5 -o /dev/null http://${atSetup}/left`;
    const setup = `
      (setsid sh -c 'trap "" TERM HUP; while :; do ${left}; sleep 0.05; done' > /dev/null 2>&1 &)
      (setsid curl -sN http://${atSetup}/hold > held 2>&1 &)
      until grep -q holding held && [ -e held ]; do sleep 0.05; done`;
    const flags = [
      "--setup",
      setup,
      "--setup-network",
      `allowlist:${atSetup}`,
      "--network",
      `allowlist:${atRun}`,
    ];
    const ended = await exec(
      flags,
      `curl -s http://${atRun}/held; pgrep -fc '[/]left'; sleep 0.5; curl -s http://${atRun}/end`,
    );
    expect(ended.stdout, ended.stderr).toBe("cut\n0\nanswer\n");
    expect(seen).toContain("setup/left");
    expect(seen.slice(seen.indexOf("run/held"))).toEqual(["run/held", "run/end"]);
  });

  it("ends with an error if it fails, and nothing runs after it", async () => {
    const setup = `echo first; printf 'the \\033[31mlast\\n' >&2; curl -s http://${atSetup}/; exit 3`;
    const ended = await exec(["--setup", setup, "--setup-network", "allowlist:a.example"], "touch ran");
    expect(ended).toMatchObject({ exitCode: 125, stdout: "" });
    expect(ended.stderr).toContain("the set-up failed with exit status 3:\nfirst\nthe last\n");
    expect(ended.stderr).toContain(`no rule of this sandbox's network allow-list allows ${atSetup}`);
    expect(ended.stderr).not.toContain("\u001b");
    expect(existsSync(inWork("ran"))).toBe(false);
  });

  it("that fails is followed by what it left for review", async () => {
    const setup = "mkdir .vscode; echo '{}' > .vscode/tasks.json; exit 3";
    const ended = await exec(["--setup", setup], "touch ran");
    expect(ended).toMatchObject({ exitCode: 125, stdout: "" });
    expect(ended.stderr).toContain(inWork(".vscode/tasks.json"));
    expect(ended.stderr).toContain("the set-up failed with exit status 3");
  });

  it("has no more network than the policy permits, and no less", async () => {
    const file = policy("closed.toml", `allowlist:${atSetup}`, false);
    const flags = ["--policy", file, "--network", "none", "--setup", triesBoth("setup"), "--setup-network"];
    const refused = await exec([...flags, `allowlist:${atSetup},${atRun}`], "touch ran");
    expect(refused).toMatchObject({ exitCode: 125, stdout: "" });
    expect(refused.stderr).toContain("does not let the network be opened for a set-up");
    expect(seen).toEqual([]);
    expect(existsSync(inWork("ran"))).toBe(false);
    const permitted = await exec([...flags, `allowlist:${atSetup}`], triesBoth("run"));
    expect(permitted.exitCode, permitted.stderr).toBe(0);
    expect(seen).toEqual(["setup/setup"]);
  });

  it.each([
    [["--setup", "true", "--setup-network", "full"], "cannot have the network"],
    [["--setup", "true", "--setup-network", "none", "--network", "full"], "cannot have the network"],
    [["--setup", "true", "--setup-network", "learn"], "cannot be learned"],
    [["--setup", "true", "--setup-network", "allowlist:*"], "is not valid"],
    [
      ["--setup", "true", "--setup-network", "allowlist:a.example", "--sandbox", "read-only"],
      "does not let the network",
    ],
    [["--setup-network", "none"], "of no use without --setup"],
    [["--setup", ""], "is empty"],
  ])("is refused with %j", async (flags, why) => {
    const ended = await exec(flags, "touch ran");
    expect(ended).toMatchObject({ exitCode: 125, stdout: "", stderr: expect.stringContaining(why) });
    expect(existsSync(inWork("ran"))).toBe(false);
  });
});

describe("[setup] of config.toml", () => {
  const shell = (command: string) => ({ calls: [{ shell_command: { command } }] });
  const configure = (script: string) =>
    writeFileSync(
      join(folder.path, "home", "config.toml"),
      `[setup]\ncommand = ["bash", "-c", ${JSON.stringify(script)}]\nnetwork = "allowlist:${atSetup}"\n`,
    );

  function scripted(...scripts: string[]): string[] {
    const file = join(folder.path, "script.json");
    writeFileSync(file, JSON.stringify({ steps: [...scripts.map(shell), { text: "done" }] }));
    return ["--script", file];
  }

  const eventsOf = (stdout: string) =>
    stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>);

  function sessionFile(): { name: string; payload: Record<string, unknown> }[] {
    const sessions = join(folder.path, "home", "sessions");
    const [file = ""] = readdirSync(sessions, { recursive: true, encoding: "utf8" }).filter((one) =>
      one.endsWith(".jsonl"),
    );
    const lines = readFileSync(join(sessions, file), "utf8").trimEnd().split("\n");
    return lines.map((line) => JSON.parse(line)).map(({ type, payload }) => ({ name: type, payload }));
  }

  it("runs once before the first call of a session, and is recorded", async () => {
    configure(`${triesBoth("setup")}; echo installed > installed`);
    const script = scripted(`cat installed; ${triesBoth("run")}`);
    const ended = await run("run", "--json", ...script, "go");
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(seen).toEqual(["setup/setup"]);
    const events = eventsOf(ended.stdout);
    const kinds = events.map(({ type }) => type);
    expect(kinds.indexOf("setup.started")).toBeGreaterThan(kinds.indexOf("thread.started"));
    expect(kinds.indexOf("setup.ended")).toBeLessThan(kinds.indexOf("item.started"));
    expect(events.find(({ type }) => type === "setup.ended")).toMatchObject({ exit_code: 0 });
    const record = sessionFile().find(({ name }) => name === "brig.setup");
    expect(record?.payload).toMatchObject({ exit_code: 0, network: `allowlist:${atSetup}` });

    const id = String(events[0]?.thread_id);
    const listed = await run("sessions", "egress", id);
    const rows = listed.stdout.trimEnd().split("\n").slice(1);
    const places = rows
      .map((row) => /(setup|run) .*(allowed|denied)/.exec(row)?.slice(1, 3).join(" "))
      .sort();
    expect(places).toEqual(["run denied", "run denied", "setup allowed", "setup denied"]);

    const resumed = await run("resume", id, "--json", ...scripted(triesBoth("again")), "go on");
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(seen).toEqual(["setup/setup"]);
    expect(resumed.stdout).not.toContain("setup.started");
  });

  it("ends the session if it fails, and is tried again when that is resumed", async () => {
    configure("echo no such package; exit 4");
    const ended = await run("run", "--json", ...scripted("touch ran"), "go");
    const events = eventsOf(ended.stdout);
    expect(ended.exitCode, ended.stderr).toBe(125);
    expect(events.find(({ type }) => type === "setup.ended")).toMatchObject({ exit_code: 4 });
    expect(events.at(-1)).toMatchObject({
      type: "turn.failed",
      error: { code: "setup.failed", message: expect.stringContaining("status 4:\nno such package") },
    });
    expect(existsSync(inWork("ran"))).toBe(false);
    expect(sessionFile().find(({ name }) => name === "brig.setup")?.payload).toMatchObject({
      exit_code: 4,
      output: "no such package\n",
    });
    configure("echo installed > installed");
    const id = String(events[0]?.thread_id);
    const resumed = await run("resume", id, "--json", ...scripted("cat installed > ran"), "go on");
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(readFileSync(inWork("ran"), "utf8")).toBe("installed\n");
  });

  it("is ended by SIGINT, with its container", async () => {
    configure("touch began; sleep 1000");
    const running = brig(["run", ...scripted("touch ran"), "go"], ofTheTest());
    while (!existsSync(inWork("began"))) await new Promise((resolve) => setTimeout(resolve, 50));
    running.kill("SIGINT");
    const ended = await running;
    expect(ended.exitCode, ended.stderr).toBe(130);
    expect(ended.stderr).toContain("setting up: touch began; sleep 1000");
    expect(await containersOf(running.pid)).toEqual([]);
    expect(existsSync(inWork("ran"))).toBe(false);
  });

  it("is not taken from a file of the workspace", async () => {
    for (const name of [".brig", ".codex"]) {
      mkdirSync(inWork(name));
      writeFileSync(
        inWork(`${name}/config.toml`),
        `[setup]\ncommand = ["touch", "ran"]\nnetwork = "allowlist:${atSetup}"\n`,
      );
    }
    const ended = await run("run", ...scripted(triesBoth("run")), "go");
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stderr).toContain("can only tighten; ignored: setup");
    expect(existsSync(inWork("ran"))).toBe(false);
    expect(seen).toEqual([]);
  });
});
