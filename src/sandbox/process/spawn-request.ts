import { BrigError } from "../../errors.js";
import { SPAWN_HEAD_BYTES, SpawnFlag } from "../channel/protocol.js";
import type { PtySize } from "../portable-sandbox.js";
import { MAX_TIMEOUT_MS } from "./timeouts.js";

/** The time between SIGTERM and SIGKILL when a timeout or an abort ends a process tree. */
export const KILL_GRACE_MS = 500;
/** The kernel's limit for one argument or environment string with its terminator (MAX_ARG_STRLEN). */
const MAX_STRING_BYTES = 128 * 1024;

export interface SpawnRequest {
  argv: readonly string[];
  cwd: string;
  env: Readonly<Record<string, string | null | undefined>>;
  timeoutMs: number | undefined;
  pty: PtySize | undefined;
  hasStdin: boolean;
  mergeOutput: boolean;
  endsTree: boolean;
}

/** The payload of a SPAWN frame. Error: `exec.invalid` for what no kernel would accept. */
export function encodeSpawn(request: SpawnRequest): Buffer {
  const strings = [...checkedArguments(request.argv)];
  const environment = checkedEnvironment(request.env);
  const cwd = checkedCwd(request.cwd);
  const head = Buffer.alloc(SPAWN_HEAD_BYTES);
  head[0] =
    (request.pty ? SpawnFlag.pty : 0) |
    (request.hasStdin ? 0 : SpawnFlag.noStdin) |
    (request.mergeOutput ? SpawnFlag.merge : 0) |
    (request.endsTree ? SpawnFlag.endsTree : 0);
  head.writeUInt16LE(checkedSize(request.pty?.rows ?? 0), 2);
  head.writeUInt16LE(checkedSize(request.pty?.cols ?? 0), 4);
  head.writeUInt32LE(checkedTimeout(request.timeoutMs), 8);
  head.writeUInt32LE(KILL_GRACE_MS, 12);
  return Buffer.concat([head, lengthPrefixed(cwd), vector(strings), vector(environment)]);
}

function checkedArguments(argv: readonly string[]): Buffer[] {
  if (typeof argv === "string" && argv !== "")
    throw new BrigError(`the command is a text; pass a list: ${asLists(argv)}`, { code: "exec.invalid" });
  if (!Array.isArray(argv) || argv.length === 0 || argv[0] === "")
    throw new BrigError("the command is empty", {
      code: "exec.invalid",
      hint: 'pass the program and its arguments as a list, for example ["ls", "-l"]',
    });
  return argv.map((argument, index) => checkedString(argument, `argument ${index}`));
}

/** The lists to pass in place of a command that was written as one text. */
function asLists(text: string): string {
  const words = /^[\w./:=@+-]+(?: [\w./:=@+-]+)*$/.test(text) ? `${listText(text.split(" "))}, or ` : "";
  return `${words}${listText(["sh", "-c", text])}`;
}

function listText(words: readonly string[]): string {
  return `[${words.map((word) => JSON.stringify(word)).join(", ")}]`;
}

function checkedEnvironment(env: SpawnRequest["env"]): Buffer[] {
  return Object.entries(env).map(([name, value]) => {
    if (name === "" || name.includes("="))
      throw new BrigError(`${JSON.stringify(name)} is not the name of an environment variable`, {
        code: "exec.invalid",
      });
    return checkedString(value == null ? name : `${name}=${value}`, `environment variable ${name}`);
  });
}

function checkedString(text: unknown, what: string): Buffer {
  if (typeof text !== "string")
    throw new BrigError(`${what} is not a string`, {
      code: "exec.invalid",
      hint: "convert it with String(…)",
    });
  if (text.includes("\0"))
    throw new BrigError(`${what} contains a NUL character, which no argument can carry`, {
      code: "exec.invalid",
      hint: "pass such data through stdin",
    });
  const bytes = Buffer.from(text, "utf8");
  if (bytes.length >= MAX_STRING_BYTES)
    throw new BrigError(
      `${what} has ${bytes.length} bytes; the kernel takes at most ${MAX_STRING_BYTES - 1}`,
      {
        code: "exec.invalid",
        hint: "pass large data through stdin or a file",
      },
    );
  return bytes;
}

function checkedCwd(cwd: string): Buffer {
  if (typeof cwd !== "string" || !cwd.startsWith("/"))
    throw new BrigError(`the working directory ${JSON.stringify(cwd)} is not an absolute path`, {
      code: "exec.bad-cwd",
    });
  return checkedString(cwd, "the working directory");
}

function checkedTimeout(timeoutMs: number | undefined): number {
  if (timeoutMs === undefined) return 0;
  if (!(timeoutMs > 0) || timeoutMs > MAX_TIMEOUT_MS)
    throw new BrigError(`timeoutMs must be between 1 and ${MAX_TIMEOUT_MS}, not ${timeoutMs}`, {
      code: "exec.invalid",
    });
  return Math.max(1, Math.round(timeoutMs));
}

function checkedSize(cells: number): number {
  if (Number.isInteger(cells) && cells >= 0 && cells <= 0xffff) return cells;
  throw new BrigError(`a terminal cannot have ${cells} rows or columns`, { code: "exec.invalid" });
}

/** The payload of a RESIZE frame. */
export function encodeSize({ rows, cols }: PtySize): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt16LE(checkedSize(rows), 0);
  payload.writeUInt16LE(checkedSize(cols), 2);
  return payload;
}

export function encodeUint32(value: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32LE(value);
  return payload;
}

export function lengthPrefixed(bytes: Uint8Array): Buffer {
  return Buffer.concat([encodeUint32(bytes.length), bytes]);
}

function vector(strings: readonly Buffer[]): Buffer {
  return Buffer.concat([encodeUint32(strings.length), ...strings.map(lengthPrefixed)]);
}
