import { constants, existsSync } from "node:fs";
import { access, realpath } from "node:fs/promises";
import { arch } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { readFileStart } from "../../../lib/bounded-file.js";
import type { HostMount } from "../../../sandbox/index.js";

/** The path in the sandbox at which the program of this machine is mounted. */
const PROGRAM_PATH = "/opt/brig-agent";

const START_BYTES = 64 * 1024;

/** A program of this machine that can be mounted into a sandbox. */
interface HostProgram {
  /** Its path on this machine, without symbolic links. */
  hostPath: string;
  mount: HostMount;
  /** Its path in the sandbox. */
  path: string;
  /** An absolute path, or the name of a program, that must exist in the image for this program to run; null for none. */
  needs: string | null;
}

export type ProgramSearch =
  | { kind: "found"; program: HostProgram }
  | { kind: "missing" }
  /** The program exists, but it cannot run in a sandbox from its place. `reason` follows its path in a sentence. */
  | { kind: "unusable"; hostPath: string; reason: string };

interface SearchPlace {
  searchPath: string;
  /** Directories that commands of the sandbox may write to: a program in one of them could be forged. */
  writable: readonly string[];
}

/** Finds the program on the `PATH` of this machine, and a way to run it in a sandbox. Runs nothing. */
export async function findHostProgram(name: string, place: SearchPlace): Promise<ProgramSearch> {
  if (name.includes("/")) return { kind: "missing" };
  for (const directory of place.searchPath.split(":").filter((one) => one.startsWith("/"))) {
    const path = await realpath(join(directory, name)).catch(() => null);
    if (path === null || !(await isExecutable(path))) continue;
    if (place.writable.some((root) => isWithin(path, root) || isWithin(directory, root))) continue;
    return await asMounted(path);
  }
  return { kind: "missing" };
}

async function asMounted(hostPath: string): Promise<ProgramSearch> {
  const start = await readFileStart(hostPath, START_BYTES);
  if (start.kind !== "read")
    return { kind: "unusable", hostPath, reason: start.kind === "missing" ? "is gone" : start.reason };
  const interpreter = elfInterpreter(start.bytes);
  if (interpreter !== undefined) return { kind: "found", program: binary(hostPath, interpreter) };
  const [, language] = /^#!\s*\S*?(?:env\s+(?:-S\s+)?)?\b(node|python[0-9.]*|sh|bash)\b/.exec(
    start.bytes.toString("latin1", 0, 200),
  ) ?? [null, null];
  if (language === "node") return await nodeProgram(hostPath);
  const what =
    language?.startsWith("python") === true ? "a Python program" : "neither a Linux program nor one for Node";
  return {
    kind: "unusable",
    hostPath,
    reason: `is ${what}, which cannot run in another file system than its own`,
  };
}

function binary(hostPath: string, needs: string | null): HostProgram {
  const path = `${PROGRAM_PATH}/${basename(hostPath)}`;
  return { hostPath, mount: { source: hostPath, path }, path, needs };
}

/** Mounts the program's package together with the packages that it needs, which are in it or beside it. */
async function nodeProgram(hostPath: string): Promise<ProgramSearch> {
  const packageRoot = packageOf(hostPath);
  if (packageRoot === null)
    return { kind: "unusable", hostPath, reason: "is a script for Node that belongs to no package" };
  const native = await nativeCodex(packageRoot);
  if (native !== null) return { kind: "found", program: native };
  const modules = packageRoot.lastIndexOf("/node_modules/");
  const hasOwnModules = modules < 0 || existsSync(join(packageRoot, "node_modules"));
  const source = hasOwnModules ? packageRoot : packageRoot.slice(0, modules + "/node_modules".length);
  const inside = `${PROGRAM_PATH}/${basename(source)}`;
  return {
    kind: "found",
    program: {
      hostPath,
      mount: { source, path: inside },
      path: `${inside}/${relative(source, hostPath)}`,
      needs: "node",
    },
  };
}

const CODEX_TARGETS: Record<string, string> = {
  x64: "x86_64-unknown-linux-musl",
  arm64: "aarch64-unknown-linux-musl",
};

/** Codex's npm package only starts a static program, which needs no Node. Null for every other package. */
async function nativeCodex(packageRoot: string): Promise<HostProgram | null> {
  const target = CODEX_TARGETS[arch()];
  if (target === undefined || !packageRoot.endsWith("/@openai/codex")) return null;
  const platform = `@openai/codex-linux-${arch()}`;
  const vendors = [
    join(packageRoot, "node_modules", platform, "vendor"),
    join(dirname(dirname(packageRoot)), platform, "vendor"),
    join(packageRoot, "vendor"),
  ];
  for (const vendor of vendors) {
    const source = await realpath(join(vendor, target)).catch(() => null);
    const program =
      source === null ? null : ["bin", "codex"].map((one) => join(source, one, "codex")).find(existsSync);
    if (source === null || program === undefined || program === null) continue;
    const path = `${PROGRAM_PATH}/codex`;
    const inside = `${path}/${relative(source, program)}`;
    return { hostPath: program, mount: { source, path }, path: inside, needs: null };
  }
  return null;
}

/** The nearest directory above with a package.json; null if there is none below `node_modules` or elsewhere. */
function packageOf(path: string): string | null {
  for (let directory = dirname(path); directory !== "/"; directory = dirname(directory))
    if (existsSync(join(directory, "package.json"))) return directory;
  return null;
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

async function isExecutable(path: string): Promise<boolean> {
  return await access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}

const PT_INTERP = 3;
const HEADER_BYTES = 64;
const MAX_PATH_BYTES = 4096;

/**
 * The loader that a program for 64-bit Linux asks for, e.g. `/lib64/ld-linux-x86-64.so.2`; null for a static one.
 * Undefined if the bytes, the first ones of a file, are not the start of such a program.
 */
function elfInterpreter(start: Buffer): string | null | undefined {
  const isElf64 = start.length >= HEADER_BYTES && start.readUInt32BE(0) === 0x7f454c46 && start[4] === 2;
  if (!isElf64 || start[5] !== 1) return undefined;
  const tableOffset = Number(start.readBigUInt64LE(32));
  const entryBytes = start.readUInt16LE(54);
  const entries = start.readUInt16LE(56);
  for (let index = 0; index < entries; index++) {
    const at = tableOffset + index * entryBytes;
    if (at + 40 > start.length) return undefined;
    if (start.readUInt32LE(at) !== PT_INTERP) continue;
    const offset = Number(start.readBigUInt64LE(at + 8));
    const length = Number(start.readBigUInt64LE(at + 32));
    if (length > MAX_PATH_BYTES || offset + length > start.length) return undefined;
    return start.toString("utf8", offset, offset + length).replace(/\0+$/, "");
  }
  return null;
}
