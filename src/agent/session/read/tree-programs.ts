import type { Readable } from "node:stream";
import type { ToolSandbox } from "../../../tools/index.js";

export interface FileFacts {
  isProgram: boolean;
  sizeBytes: number;
}

interface ProgramRequest {
  sandbox: Pick<ToolSandbox, "spawn">;
  /** The directory that the names are relative to. */
  root: string;
  signal: AbortSignal;
}

/** More than a program prints about the largest tree that is described. */
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
const REGULAR = 0o100000;
const TYPE_BITS = 0o170000;

/**
 * Runs the image's `stat` once for all files, and returns the modes and sizes of regular files. Missing
 * files, names that do not fit a line, and all files of an image without `stat` are left out.
 */
export async function statFiles(
  names: readonly string[],
  request: ProgramRequest,
): Promise<Map<string, FileFacts>> {
  const facts = new Map<string, FileFacts>();
  for (const line of await runOnFiles(["stat", "-c", "%f %s %n"], names, request)) {
    const [, mode, size, name] = /^([0-9a-f]+) (\d+) \.\/(.*)$/.exec(line) ?? [];
    if (mode === undefined || size === undefined || name === undefined) continue;
    const bits = Number.parseInt(mode, 16);
    if ((bits & TYPE_BITS) !== REGULAR) continue;
    facts.set(name, { isProgram: (bits & 0o111) !== 0, sizeBytes: Number(size) });
  }
  return facts;
}

/** Runs the image's `sha256sum` likewise, and returns the files' hashes in hexadecimal. */
export async function hashFiles(
  names: readonly string[],
  request: ProgramRequest,
): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  for (const line of await runOnFiles(["sha256sum"], names, request)) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}

/** Returns the lines that a program prints about all files. */
async function runOnFiles(
  program: readonly string[],
  names: readonly string[],
  { sandbox, root, signal }: ProgramRequest,
): Promise<string[]> {
  const asked = names.filter(fitsLine).map((name) => `./${name}\0`);
  if (asked.length === 0) return [];
  const running = await sandbox.spawn(["xargs", "-0", ...program], { cwd: root, signal });
  running.stderr?.resume();
  // A program that ended early closes its standard input.
  running.stdin?.on("error", () => undefined);
  running.stdin?.end(asked.join(""));
  const text = await readAll(running.stdout);
  await running.exit;
  return text.split("\n");
}

/** Programs escape or break other names. */
function fitsLine(name: string): boolean {
  return !/[\n\\\ufffd]/.test(name);
}

async function readAll(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= MAX_OUTPUT_BYTES) chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
