import { posix } from "node:path";
import { isBrigError } from "../../../errors.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { Sandbox } from "../../../sandbox/index.js";

/** A program that still runs in a container. */
export interface RunningProgram {
  /** The beginning of its command line. It comes from the container. */
  name: string;
  /** TCP ports that it listens on. */
  ports: number[];
}

type Files = Pick<Sandbox["files"], "list" | "read" | "stat">;

const MAX_PROGRAMS = 200;
const MAX_DESCRIPTORS = 64;
/** Time limit for reading /proc: a process can delay what the kernel says about it. */
const LONGEST_MS = 10_000;
const MAX_NAME = 60;
const MAX_TEXT_BYTES = 4 * 1024 * 1024;
const LISTENING = "0A";

/**
 * The programs that run in a container besides brig's own, according to /proc; those that listen come first. No program
 * of the container takes part. Anything that cannot be read in time is left out. Error: the signal's reason.
 */
export async function runningPrograms(
  { files }: { files: Files },
  given: AbortSignal | undefined,
): Promise<RunningProgram[]> {
  using limit = new TimeLimit(LONGEST_MS, given);
  const found = new Map<string, Set<number>>();
  try {
    await findPrograms({ files, signal: limit.signal }, found);
  } catch (error) {
    given?.throwIfAborted();
    if (!limit.isOver) throw error;
  }
  return [...found]
    .map(([name, own]) => ({ name, ports: [...own].toSorted((a, b) => a - b) }))
    .toSorted((one, other) => Number(other.ports.length > 0) - Number(one.ports.length > 0));
}

interface Reading {
  files: Files;
  signal: AbortSignal;
}

async function findPrograms(reading: Reading, found: Map<string, Set<number>>): Promise<void> {
  const { files, signal } = reading;
  const entries = await unlessGone(files.list("/proc", { signal }), []);
  const pids = entries.map(({ name }) => name).filter((name) => /^[0-9]+$/.test(name));
  const ports = await listeningPorts(reading);
  for (const pid of pids.slice(0, MAX_PROGRAMS)) {
    const name = await nameOf(reading, pid);
    if (name === null) continue;
    const own = found.get(name) ?? new Set<number>();
    found.set(name, own);
    if (ports.size > 0) for (const port of await portsOf(reading, pid, ports)) own.add(port);
  }
}

/** `"nginx" (port 80), "sleep 60"` */
export function describePrograms(programs: readonly RunningProgram[]): string {
  const shown = programs.slice(0, MAX_SHOWN).map(({ name, ports }) => {
    const text = JSON.stringify(name);
    return ports.length === 0 ? text : `${text} (port${ports.length === 1 ? "" : "s"} ${ports.join(", ")})`;
  });
  const left = programs.length - shown.length;
  return [...shown, ...(left > 0 ? [`${left} more`] : [])].join(", ");
}

const MAX_SHOWN = 20;

/** The name of a program. Null for one of brig's own, and for one that has ended, zombies included. */
async function nameOf(reading: Reading, pid: string): Promise<string | null> {
  const [line, stat] = await Promise.all([
    textOf(reading, `/proc/${pid}/cmdline`),
    textOf(reading, `/proc/${pid}/stat`),
  ]);
  const [, comm = "", state = "Z"] = /^[0-9]+ \((.*)\) (\S)/s.exec(stat) ?? [];
  const [program = "", ...args] = line.split("\0").filter((part) => part !== "");
  if (state === "Z" || state === "X" || program.startsWith("/.brig/") || pid === "1") return null;
  const name = program === "" ? comm : [posix.basename(program), ...args].join(" ");
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
}

/** Ports that programs listen on, by the inode of their sockets. */
async function listeningPorts(reading: Reading): Promise<Map<string, number>> {
  const ports = new Map<string, number>();
  const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((path) => textOf(reading, path)));
  for (const row of tables.join("\n").split("\n")) {
    const [, local = "", , state, , , , , , inode = ""] = row.trim().split(/\s+/);
    const port = Number.parseInt(local.split(":").at(-1) ?? "", 16);
    if (state === LISTENING && Number.isInteger(port)) ports.set(inode, port);
  }
  return ports;
}

async function portsOf(
  { files, signal }: Reading,
  pid: string,
  ports: ReadonlyMap<string, number>,
): Promise<number[]> {
  const descriptors = (await unlessGone(files.list(`/proc/${pid}/fd`, { signal }), [])).slice(
    0,
    MAX_DESCRIPTORS,
  );
  const targets = await Promise.all(
    descriptors.map(async ({ name }) => {
      const path = `/proc/${pid}/fd/${name}`;
      return (await unlessGone(files.stat(path, { followSymlinks: false, signal }), null))?.linkTarget ?? "";
    }),
  );
  return targets.flatMap((target) => {
    const port = ports.get(/^socket:\[([0-9]+)\]$/.exec(target)?.[1] ?? "");
    return port === undefined ? [] : [port];
  });
}

async function textOf({ files, signal }: Reading, path: string): Promise<string> {
  const content = await unlessGone(files.read(path, { maxBytes: MAX_TEXT_BYTES, signal }), Buffer.alloc(0));
  return content.toString("utf8");
}

/** A process may end meanwhile, and the whole container with it. */
async function unlessGone<T>(reading: Promise<T>, instead: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (isBrigError(error)) return instead;
    throw error;
  }
}
