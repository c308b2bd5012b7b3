import { execFileSync } from "node:child_process";
import { closeSync, constants, openSync, readdirSync, readlinkSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig, program } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { gif } from "../unit/tools/picture/pictures.js";

let folder: string;
let fifo: string;
let env: Record<string, string>;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  folder = made.path;
  fifo = join(folder, "fifo");
  execFileSync("mkfifo", [fifo]);
  const home = join(folder, "home");
  env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "k", OPENAI_BASE_URL: "" };
});

const args = ["run", "--ephemeral", "--workspace", "none", "What is it?"];

function openFiles(pid: number | undefined): string[] {
  const folder = `/proc/${pid}/fd`;
  return readdirSync(folder).flatMap((name) => {
    try {
      return [readlinkSync(join(folder, name))];
    } catch {
      return []; // closed by now
    }
  });
}

describe("a picture for the model", () => {
  it("may come from a process substitution of the shell", async () => {
    await using server = await startResponsesServer([respond(messageDone("A dot."))]);
    await writeFile(join(folder, "dot.gif"), gif(3, 4));
    const line = `exec "$0" "$@" -i <(sleep 0.3; cat dot.gif)`;
    const done = await execa("bash", ["-c", line, process.execPath, program, ...args], {
      cwd: folder,
      env: { ...env, OPENAI_BASE_URL: server.url },
      stdin: "ignore",
      reject: false,
    });
    expect(done.stderr).not.toContain("cannot be read");
    expect(done.stdout).toBe("A dot.");
    const picture = `data:image/gif;base64,${gif(3, 4).toString("base64")}`;
    expect(JSON.stringify(server.requests[0]?.body.input)).toContain(picture);
  });

  it("is refused at once where it is a pipe that nobody writes to", async () => {
    const done = await brigHere([...args, "-i", fifo], { cwd: folder, env });
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain(`${fifo} cannot be read: it is an empty pipe without a writer`);
  });

  it("is waited for no longer than until ctrl-C", async () => {
    const silent = openSync(fifo, constants.O_RDWR);
    onTestFinished(() => closeSync(silent));
    const running = brig([...args, "-i", fifo], { cwd: folder, env });
    while (!openFiles(running.pid).includes(fifo)) await sleep(20);
    running.kill("SIGINT");
    expect((await running).exitCode).toBe(130);
  });
});

describe("a provider that is no endpoint", () => {
  it.each([
    ["scripted", "use: brig run --script FILE"],
    ["replay", "use: brig replay ID|FILE"],
  ])("%s is refused with the command that has it", async (provider, hint) => {
    const done = await brigHere([...args, "-c", `model_provider=${provider}`], { cwd: folder, env });
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain(hint);
  });
});
