import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import {
  closeSync,
  constants,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { readGivenFile } from "../../../src/command/given-file.js";
import { temporaryDirectory } from "../../support/sandbox.js";

const never = new AbortController().signal;
let folder: string;
let fifo: string;

beforeEach(async () => {
  const made = await temporaryDirectory();
  onTestFinished(() => made[Symbol.asyncDispose]());
  folder = made.path;
  fifo = join(folder, "fifo");
  execFileSync("mkfifo", [fifo]);
});

/** A shell that writes to the FIFO. It cannot open it before somebody reads. */
function writer(commands: string): ChildProcess {
  const shell = spawn("sh", ["-c", `{ ${commands}; } > "$0"`, fifo], { stdio: "ignore" });
  onTestFinished(() => void shell.kill("SIGKILL"));
  return shell;
}

/** Holds the FIFO open, so that it does not end before its writer has: the caller closes it. */
function hold(): () => void {
  const held = openSync(fifo, constants.O_RDWR);
  return () => closeSync(held);
}

function descriptorsOf(path: string): number {
  const links = readdirSync("/proc/self/fd").map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return null;
    }
  });
  return links.filter((link) => link === path).length;
}

/** The state of a process, as `ps` shows it: "S" is a process that waits. */
function stateOf({ pid }: ChildProcess): string | undefined {
  return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.[0];
}

describe("a file that was named", () => {
  it("is read whole when it is a regular one", async () => {
    const bytes = Buffer.alloc(300_000, "ab");
    writeFileSync(join(folder, "file"), bytes);
    expect(bytes.equals(await readGivenFile(join(folder, "file"), never))).toBe(true);
  });

  it("is read to its end when it is a pipe, however slowly that is written to", async () => {
    const release = hold();
    const reading = readGivenFile(fifo, never);
    const shell = writer("head -c 200000 /dev/zero; sleep 0.1; printf abc; sleep 0.1; printf def");
    shell.once("close", release);
    const bytes = await reading;
    expect(bytes.length).toBe(200_006);
    expect(bytes.subarray(-6).toString()).toBe("abcdef");
  });

  it("is read whole when it is a pipe whose writer was waiting for a reader", async () => {
    const shell = writer("head -c 300000 /dev/zero");
    await expect.poll(() => stateOf(shell)).toBe("S");
    await sleep(50);
    expect((await readGivenFile(fifo, never)).length).toBe(300_000);
  });

  it("is waited for when it is a pipe whose writer has said nothing yet, until an abort", async () => {
    const silent = openSync(fifo, constants.O_RDWR);
    onTestFinished(() => closeSync(silent));
    const controller = new AbortController();
    const wait = readGivenFile(fifo, controller.signal);
    await sleep(30);
    const reason = new Error("enough");
    controller.abort(reason);
    await expect(wait).rejects.toBe(reason);
  });

  it("says what is waited for when it is a pipe that stays open", async () => {
    const silent = openSync(fifo, constants.O_RDWR);
    onTestFinished(() => closeSync(silent));
    const controller = new AbortController();
    const stderr = new PassThrough();
    const wait = readGivenFile(fifo, controller.signal, { stderr });
    await expect
      .poll(() => String(stderr.read() ?? ""), { timeout: 20_000 })
      .toContain(`brig: reading the pipe ${fifo}\n`);
    controller.abort(new Error("enough"));
    await expect(wait).rejects.toThrow("enough");
  });

  it("is no more than there is room for, though it be a pipe without an end", async () => {
    const release = hold();
    onTestFinished(release);
    const shell = writer("yes");
    await expect(readGivenFile(fifo, never)).rejects.toMatchObject({
      code: "usage.invalid",
      message: `${fifo} is larger than 67108864 bytes`,
    });
    expect(shell.exitCode).toBeNull();
    writeFileSync(join(folder, "large"), "");
    truncateSync(join(folder, "large"), 64 * 1024 * 1024 + 1);
    await expect(readGivenFile(join(folder, "large"), never)).rejects.toThrow("larger than 67108864 bytes");
  });

  it("is refused when it is a pipe whose writer goes without a word", async () => {
    const silent = openSync(fifo, constants.O_RDWR);
    const wait = readGivenFile(fifo, never);
    // Its second descriptor: by then it has seen that there is a writer.
    await expect.poll(() => descriptorsOf(fifo)).toBe(3);
    closeSync(silent);
    await expect(wait).rejects.toThrow("it is a pipe, and its writer wrote nothing");
  });

  it("is refused soon when it is a pipe that nobody writes to", async () => {
    await expect(readGivenFile(fifo, never)).rejects.toMatchObject({
      code: "usage.invalid",
      message: `${fifo} cannot be read: it is an empty pipe without a writer`,
    });
  });

  it("is refused when it is a directory, a device, a socket, or not there", async () => {
    const socket = createServer().listen(join(folder, "socket"));
    onTestFinished(() => void socket.close());
    for (const [path, reason] of [
      [folder, "it is a directory"],
      ["/dev/zero", "it is a device"],
      [join(folder, "socket"), "it is a socket"],
      [join(folder, "missing"), "no such file"],
      [`${fifo}/below`, "ENOTDIR"],
    ] as const)
      await expect(readGivenFile(path, never)).rejects.toMatchObject({
        code: "usage.invalid",
        message: `${path} cannot be read: ${reason}`,
      });
  });
});
