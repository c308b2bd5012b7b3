import { once } from "node:events";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { brigHere } from "../support/cli-here.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

const server = createServer((_, response) => response.end("answer of the server\n"));
let folder: TemporaryDirectory;
let port = 0;
let plays = 0;

const env = () => ({
  ...{ BRIG_HOME: join(folder.path, "home"), CODEX_HOME: join(folder.path, "home") },
  ...{ OPENAI_API_KEY: "", OPENAI_BASE_URL: "" },
});

beforeAll(async () => {
  folder = await temporaryDirectory();
  await Promise.all(["home", "work"].map((name) => mkdir(join(folder.path, name))));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
});

afterAll(async () => {
  server.close();
  await folder[Symbol.asyncDispose]();
});

/** Each script is a call of its own. */
async function play(...scripts: string[]): Promise<string[]> {
  const calls = scripts.map((script) => ({
    calls: [{ shell: { command: ["bash", "-c", script], timeout_ms: 60_000 } }],
  }));
  const file = join(folder.path, `play-${plays++}.json`);
  await writeFile(file, JSON.stringify({ steps: [...calls, { text: "done" }] }));
  return ["--network", "allowlist:", "-a", "on-request", "--script", file, "go"];
}

async function onTerminal(...scripts: string[]): Promise<Terminal> {
  const terminal = await Terminal.open(["run", ...(await play(...scripts))], {
    cwd: join(folder.path, "work"),
    env: env(),
  });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  return terminal;
}

const question = /Type a number, or your own answer: $/;
const curl = () => `curl -s http://host.internal:${port}/`;
/** How often it is on the screen in the end: while a command runs, its last lines are drawn again and again. */
const lastingCount = (terminal: Terminal, part: string) =>
  terminal.screen.history.join("\n").split(part).length - 1;
/** A question is written once, and goes away with its answer. */
const questionCount = (terminal: Terminal) => terminal.shown.split("Type a number").length - 1;

describe("a program that wants to reach a host that is not allowed", () => {
  it("waits for the user, who allows it for this command: all of its connections, and no other command's", async () => {
    const terminal = await onTerminal(`${curl()} & ${curl()} & wait; ${curl()}`, curl());
    await terminal.waitFor(question);
    await expect
      .poll(() => terminal.screen.history.join(" ").replace(/\s+/g, " "))
      .toContain(`The program "curl" in the sandbox wants to connect to host.internal:${port}`);
    terminal.type("1\r");
    await terminal.waitFor(/answer of the server[\s\S]*Type a number, or your own answer: $/);
    terminal.type("it is not needed\r");
    expect((await terminal.end()).exitStatus).toBe(0);
    await expect.poll(() => lastingCount(terminal, "answer of the server")).toBe(3);
    expect(questionCount(terminal)).toBe(2);
    expect(terminal.shown.replace(/\s+/g, " ")).toContain(
      `the user declined the connection to host.internal:${port}: it is not needed`,
    );
  });

  it("is allowed until the session ends", async () => {
    const terminal = await onTerminal(curl(), curl(), curl());
    await terminal.waitFor(question);
    terminal.type("2\r");
    expect((await terminal.end()).exitStatus).toBe(0);
    await expect.poll(() => lastingCount(terminal, "answer of the server")).toBe(3);
    expect(questionCount(terminal)).toBe(1);
  });

  it("is allowed in later sessions of the directory, until it is taken back, and in no other directory", async () => {
    const file = join(folder.path, "home", "allowed-hosts.json");
    onTestFinished(() => rmSync(file, { force: true }));
    const asking = await onTerminal(curl());
    await asking.waitFor(question);
    asking.type("4\r");
    expect((await asking.end()).exitStatus).toBe(0);
    const host = `host.internal:${port}`;
    const projects = () => JSON.parse(readFileSync(file, "utf8")).projects;
    expect(projects()).toEqual({ [join(folder.path, "work")]: [host] });
    const later = async (cwd: string) =>
      await brigHere(["run", ...(await play(curl()))], { cwd, env: env() });
    expect((await later(join(folder.path, "work"))).stderr).toContain("answer of the server");
    await mkdir(join(folder.path, "other"));
    expect((await later(join(folder.path, "other"))).stderr).toContain(
      "no rule of this sandbox's network allow-list allows",
    );
    await writeFile(join(folder.path, "converse.json"), JSON.stringify({ steps: [{ text: "one" }] }));
    const args = ["-a", "never", "--network", "allowlist:", "--script", join(folder.path, "converse.json")];
    const terminal = await Terminal.open(args, { cwd: join(folder.path, "work"), env: env() });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("/network\r");
    await terminal.waitForScreen(new RegExp(`always here +${host.replaceAll(".", "\\.")}`));
    terminal.type(`/network deny ${host}\r`);
    await terminal.waitForScreen(/from now on: no hosts/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(projects()).toEqual({});
    writeFileSync(file, `{"version":1,"projects":{"${join(folder.path, "work")}":["@public"]}}`);
    const damaged = await later(join(folder.path, "work"));
    expect(damaged).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining("is not as brig writes it"),
    });
  });

  it("is refused at once where nobody can be asked", async () => {
    const done = await brigHere(["run", ...(await play(curl()))], {
      cwd: join(folder.path, "work"),
      env: env(),
    });
    expect(done.exitCode, done.stderr).toBe(0);
    expect(done.stderr).not.toContain("Type a number");
    expect(done.stderr).toContain("no rule of this sandbox's network allow-list allows");
  });
});

describe("/network in a conversation", () => {
  it("shows the list and what was tried, and changes the list in the same container", async () => {
    const script = join(folder.path, "converse.json");
    const step = { calls: [{ shell: { command: ["bash", "-c", `${curl()}; echo "ran"`] } }] };
    await writeFile(script, JSON.stringify({ steps: [step, { text: "one" }, step, { text: "finished" }] }));
    const args = ["-a", "never", "--network", "allowlist:a.example", "--script", script];
    const terminal = await Terminal.open(args, { cwd: join(folder.path, "work"), env: env() });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    const say = async (line: string, answer: RegExp) => {
      terminal.type(`${line}\r`);
      await terminal.waitForScreen(answer);
      await terminal.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*\n›\s*\n/);
    };
    await terminal.waitForScreen(/^›\s*$/m);
    await say("go", /one/);
    await say("/network", /allowed +a\.example/);
    expect(terminal.screen.history.join("\n")).toMatch(
      new RegExp(`host\\.internal:${port} +denied +no-rule +curl`),
    );
    await say("/network deny b.example", /has no entry b\.example/);
    await say(`/network allow host.internal:${port}`, /allowed from now on/);
    await say("go", /finished/);
    expect(terminal.screen.history.join("\n")).toContain("answer of the server");
    await say("/network none", /from now on: no hosts/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
  });
});
