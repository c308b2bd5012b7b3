import type { Readable } from "node:stream";
import type { ToolSandbox } from "../../tools/tool-sandbox.js";

/** What is known of a file from one look at many. */
export interface FileFacts {
  isProgram: boolean;
  sizeBytes: number;
}

type Spawning = Pick<ToolSandbox, "spawn">;

interface Asking {
  sandbox: Spawning;
  /** Where the names start from. */
  root: string;
  signal: AbortSignal;
}

/** More than this no program has to say of as many files as are asked about. */
const MAX_OUTPUT_BYTES = 32 * 1024 * 1024;
const REGULAR = 0o100000;
const TYPE_BITS = 0o170000;

/**
 * Modes and sizes of regular files, from the image's own `stat`, which is asked once for all. A file that it does not tell of, an image
 * without it, a name that a line cannot hold: they are not in the answer.
 */
export async function askForFacts(names: readonly string[], asking: Asking): Promise<Map<string, FileFacts>> {
  const facts = new Map<string, FileFacts>();
  for (const line of await askEach(["stat", "-c", "%f %s %n"], names, asking)) {
    const [, mode, size, name] = /^([0-9a-f]+) (\d+) \.\/(.*)$/.exec(line) ?? [];
    if (mode === undefined || size === undefined || name === undefined) continue;
    const bits = Number.parseInt(mode, 16);
    if ((bits & TYPE_BITS) !== REGULAR) continue;
    facts.set(name, { isProgram: (bits & 0o111) !== 0, sizeBytes: Number(size) });
  }
  return facts;
}

/** SHA-256 of files in hexadecimal, from the image's own `sha256sum`, likewise. */
export async function askForHashes(names: readonly string[], asking: Asking): Promise<Map<string, string>> {
  const hashes = new Map<string, string>();
  for (const line of await askEach(["sha256sum"], names, asking)) {
    const [, hash, name] = /^([0-9a-f]{64}) [ *]\.\/(.*)$/.exec(line) ?? [];
    if (hash !== undefined && name !== undefined) hashes.set(name, hash);
  }
  return hashes;
}

/** The lines that a program prints of all the files. */
async function askEach(
  program: readonly string[],
  names: readonly string[],
  { sandbox, root, signal }: Asking,
): Promise<string[]> {
  const asked = names.filter(fitsLine).map((name) => `./${name}\0`);
  if (asked.length === 0) return [];
  const running = await sandbox.spawn(["xargs", "-0", ...program], { cwd: root, signal });
  running.stderr?.resume();
  // One that ended early reads nothing more.
  running.stdin?.on("error", () => undefined);
  running.stdin?.end(asked.join(""));
  const text = await readAll(running.stdout);
  await running.exit;
  return text.split("\n");
}

/** Programs print other names in ways of their own, or break them. */
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
