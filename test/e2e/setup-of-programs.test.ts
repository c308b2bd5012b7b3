import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

let seen: string[] = [];
let at = "";
let [work, home] = ["", ""];

const server = createServer((request, response) => {
  seen.push(request.url ?? "");
  response.end("answer\n");
});

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  at = `host.internal:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});
beforeEach(async () => {
  seen = [];
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  [work, home] = [join(directory.path, "work"), join(directory.path, "home")];
  for (const one of [work, home]) mkdirSync(one);
});

const asks = (name: string) => `curl -s -o /dev/null http://${at}/${name}; true`;
const env = () => ({ BRIG_HOME: home, CODEX_HOME: home });
const wrap = (...args: string[]) => brigHere(["wrap", ...args], { cwd: work, env: env() });
const inWork = (name: string) => join(work, name);
const setsUp = (command: string) => ["--setup", command, "--setup-network", `allowlist:${at}`];

async function shell(...flags: string[]): Promise<Terminal> {
  const terminal = await Terminal.open(["shell", ...flags], { cwd: work, env: env() });
  onTestFinished(() => terminal[Symbol.asyncDispose]());
  return terminal;
}

describe("brig wrap --setup", () => {
  it("runs before the agent, with its own network, and shows its output", async () => {
    const setup = `${asks("setup")}; printf 'one \\033[31mred\\n'; echo two >&2; echo installed > installed`;
    const agent = ["sh", "-c", `cat installed; ${asks("agent")}`];
    const ended = await wrap(...setsUp(setup), "--network", "allowlist:a.example", "--", ...agent);
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).toBe("installed\n");
    expect(seen).toEqual(["/setup"]);
    expect(ended.stderr).toContain("setting up: one red\n");
    expect(ended.stderr).toContain("setting up: two\n");
    expect(ended.stderr).not.toContain("\u001b");
  });

  it("may install the agent itself", async () => {
    const setup = `mkdir -p ~/bin; printf '#!/bin/sh\\necho from-set-up\\n' > ~/bin/agent; chmod +x ~/bin/agent`;
    const ended = await wrap("--setup", setup, "--", "sh", "-c", "~/bin/agent");
    expect(ended).toMatchObject({ exitCode: 0, stdout: "from-set-up\n" });
  });

  it("that fails starts no agent, leaves no session, and says what it left", async () => {
    const setup = "mkdir .vscode; echo '{}' > .vscode/tasks.json; echo no such package; exit 4";
    const ended = await wrap("--name", "one", "--setup", setup, "--", "touch", "ran");
    expect(ended).toMatchObject({ exitCode: 125, stdout: "" });
    expect(ended.stderr).toContain("the set-up failed with exit status 4:\nno such package\n");
    expect(ended.stderr).toContain(inWork(".vscode/tasks.json"));
    expect(existsSync(inWork("ran"))).toBe(false);
    expect(existsSync(join(home, "wrapped", "one"))).toBe(false);
  });

  it("belongs to the beginning of a session, and is not run again", async () => {
    const setup = "echo set-up >> log";
    const begun = await wrap("--name", "one", "--setup", setup, "--", "sh", "-c", "echo agent >> log");
    expect(begun.exitCode, begun.stderr).toBe(0);
    const resumed = await wrap("--resume", "one");
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    expect(readFileSync(inWork("log"), "utf8")).toBe("set-up\nagent\nagent\n");
    for (const flag of ["--resume", "--name"]) {
      const refused = await wrap(flag, "one", "--setup", setup, "--", "touch", "ran");
      expect(refused.exitCode).toBe(125);
      expect(refused.stderr).toContain("the session one has begun already");
    }
    expect(existsSync(inWork("ran"))).toBe(false);
  });

  it("is refused as in brig exec", async () => {
    const refused = await wrap("--setup-network", "none", "--", "touch", "ran");
    expect(refused.exitCode).toBe(125);
    expect(refused.stderr).toContain("of no use without --setup");
    expect(existsSync(inWork("ran"))).toBe(false);
  });

  it("is ended by SIGINT, with its container", async () => {
    const args = ["wrap", "--setup", "touch began; sleep 1000", "--", "touch", "ran"];
    const running = brig(args, { cwd: work, env: env() });
    await expect.poll(() => existsSync(inWork("began"))).toBe(true);
    running.kill("SIGINT");
    expect((await running).exitCode).toBe(130);
    expect(await containersOf(running.pid)).toEqual([]);
    expect(existsSync(inWork("ran"))).toBe(false);
  });
});

describe("brig shell --setup", () => {
  it("runs before the shell, with its own network, and its progress makes room for the prompt", async () => {
    const setup = `${asks("setup")}; echo installing; until [ -e go ]; do sleep 0.05; done; echo set-up > log`;
    const terminal = await shell(...setsUp(setup));
    await terminal.waitFor(/setting up: installing/);
    await brigHere(["exec", "--", "touch", "go"], { cwd: work, env: env() });
    await terminal.waitFor(/[#$] $/);
    terminal.type(`cat log; ${asks("shell")}; exit 3\r`);
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect(exitStatus).toBe(3);
    expect(settingsAfter).toBe(settingsBefore);
    expect(seen).toEqual(["/setup"]);
  });

  it("that fails opens no shell", async () => {
    const terminal = await shell("--setup", "echo no such package; exit 4");
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect(exitStatus).toBe(125);
    expect(terminal.shown).toContain("the set-up failed with exit status 4:");
    expect(settingsAfter).toBe(settingsBefore);
  });

  it("is ended by ctrl-C", async () => {
    const terminal = await shell("--setup", "touch began; sleep 1000");
    await expect.poll(() => existsSync(inWork("began"))).toBe(true);
    terminal.type("\x03");
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect(exitStatus).toBe(130);
    expect(settingsAfter).toBe(settingsBefore);
  });
});
