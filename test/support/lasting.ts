import { mkdir, readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Readable } from "node:stream";
import { expect, onTestFinished } from "vitest";
import { type BrigOptions, brig } from "./cli.js";
import { brigHere } from "./cli-here.js";
import { temporaryDirectory } from "./sandbox.js";
import { Terminal } from "./terminal.js";

/** A `$BRIG_HOME` and a workspace, for lasting sandboxes of a test. What is left of them ends with the test. */
export interface LastingPlace {
  home: string;
  workspace: string;
  /** Runs brig in this process. */
  run(...args: string[]): ReturnType<typeof brigHere>;
  /** Runs brig as a program of its own. */
  start(args: string[], options?: BrigOptions): ReturnType<typeof brig>;
  /** The process that keeps the sandboxes; null if there is none. */
  ownerPid(): Promise<number | null>;
  /** Runs brig on a terminal of its own. */
  terminal(args: string[], variables?: Record<string, string>): Promise<Terminal>;
}

/** @param options.homeName Where `$BRIG_HOME` is, from the directory of the test. */
export async function lastingPlace({
  homeName = "home",
  variables = {},
}: {
  homeName?: string;
  variables?: Record<string, string>;
} = {}): Promise<LastingPlace> {
  const directory = await temporaryDirectory();
  const [home, workspace] = [resolve(directory.path, homeName), join(directory.path, "work")];
  await mkdir(workspace);
  const env = {
    BRIG_HOME: home,
    CODEX_HOME: join(directory.path, "codex"),
    OPENAI_API_KEY: "",
    ...variables,
  };
  const ownerPid = async () => await ownerOf(home);
  onTestFinished(async () => {
    const pid = await ownerPid();
    if (pid !== null) await endProcess(pid, "SIGTERM");
    await directory[Symbol.asyncDispose]();
  });
  return {
    ...{ home, workspace, ownerPid },
    run: (...args) => brigHere(args, { env, cwd: workspace }),
    start: (args, options = {}) =>
      brig(args, { cwd: workspace, ...options, env: { ...env, ...options.env } }),
    async terminal(args, more = {}) {
      const terminal = await Terminal.open(args, { cwd: workspace, env: { ...env, ...more } });
      onTestFinished(() => terminal[Symbol.asyncDispose]());
      return terminal;
    },
  };
}

/** Starts a sandbox. Returns its name. */
export async function upIn(place: LastingPlace, ...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await place.run("up", ...args);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return stdout.trimEnd();
}

/** The first that a program prints. */
export async function firstOutput({ stdout }: { stdout: Readable }): Promise<string> {
  return await new Promise((resolve) =>
    stdout.once("data", (chunk: Buffer) => resolve(chunk.toString().trim())),
  );
}

async function ownerOf(home: string): Promise<number | null> {
  const directory = join(home, "lasting");
  const names = await readdir(directory).catch(() => []);
  for (const name of names.filter((one) => /^\.owner\.[0-9a-f]+\.lock$/.test(one))) {
    const { pid } = JSON.parse(await readFile(join(directory, name), "utf8"));
    if (isAlive(pid)) return pid;
  }
  return null;
}

export async function endProcess(pid: number, signal: NodeJS.Signals): Promise<void> {
  if (isAlive(pid)) process.kill(pid, signal);
  await expect.poll(() => isAlive(pid), { timeout: 30_000 }).toBe(false);
}

/** Kills the owner, and waits for the next one. */
export async function killOwner(place: LastingPlace): Promise<void> {
  await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
  await expect.poll(() => place.ownerPid(), { timeout: 60_000, interval: 100 }).not.toBeNull();
}

/** The shells that start another owner when theirs is killed. */
export async function watchersOf({ home }: LastingPlace): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [command, environment] = await Promise.all(
        ["cmdline", "environ"].map((file) => readFile(`/proc/${pid}/${file}`, "latin1").catch(() => "")),
      );
      const isOne = command?.includes("brig-watch") && environment?.split("\0").includes(`BRIG_HOME=${home}`);
      return isOne ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
