import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { onTestFinished } from "vitest";

/** A server on a socket, which is bound before it is renamed or linked. Its paths may be relative. */
const SERVER = `
const { chdir } = require("node:process");
const { linkSync, renameSync, unlinkSync } = require("node:fs");
const [directory, address, renamed, linked] = process.argv.slice(1);
chdir(directory);
require("node:net").createServer((socket) => socket.on("error", () => undefined)).listen(address, () => {
  if (renamed !== "") renameSync(address, renamed);
  if (linked !== "") linkSync(renamed || address, linked);
  console.log("listening");
});
process.stdin.on("end", () => process.exit()).resume();
`;

/** Takes datagrams, which Node cannot. */
const DATAGRAMS = `
import os, socket, sys
os.chdir(sys.argv[1])
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[2])
print("listening", flush=True)
sys.stdin.read()
`;

export interface HostListener {
  /** Where the program is when it binds its socket. */
  directory: string;
  address: string;
  /** What the socket is renamed to afterwards. */
  renamed?: string;
  /** A second name that it gets. */
  linked?: string;
  datagrams?: boolean;
}

/** Another program of this machine that listens, until the test has ended. */
export async function listenOnHost(listener: HostListener): Promise<ChildProcess> {
  const { directory, address, renamed = "", linked = "", datagrams = false } = listener;
  const child = datagrams
    ? spawn("python3", ["-c", DATAGRAMS, directory, address], { stdio: ["pipe", "pipe", "inherit"] })
    : spawn(process.execPath, ["-e", SERVER, directory, address, renamed, linked], {
        stdio: ["pipe", "pipe", "inherit"],
      });
  onTestFinished(async () => await stopListening(child));
  await once(child.stdout, "data");
  return child;
}

/** A killed program leaves the file of its socket behind. */
export async function stopListening(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

export function makeFifo(...paths: string[]): void {
  execFileSync("mkfifo", paths);
}

/** A program that waits for somebody to write to a FIFO, until the test has ended. */
export function readFifoOnHost(path: string): ChildProcess {
  const child = spawn("cat", [path], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(async () => await stopListening(child));
  return child;
}
