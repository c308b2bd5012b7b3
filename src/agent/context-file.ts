import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { BrigError } from "../errors.js";
import { formatBytes } from "../lib/bytes.js";

/** A model reads them with every request: more than this is a mistake. */
const MAX_INSTRUCTIONS_BYTES = 256 * 1024;

/** What a file of the user's own on this machine holds. */
type OwnFile =
  | { kind: "read"; bytes: Uint8Array; isLonger: boolean }
  | { kind: "missing" }
  /** In words that follow the file's name, e.g. `is a directory`. */
  | { kind: "unreadable"; reason: string; cause?: unknown };

/**
 * Reads the base instructions from `model_instructions_file` or `--instructions-file`. One that is missing, empty, longer than
 * 256 KiB, no text, or no regular file is `config.invalid`.
 */
export async function readInstructionsFile(path: string): Promise<string> {
  const file = await readOwnFile(path, MAX_INSTRUCTIONS_BYTES);
  if (file.kind === "missing") throw wrongInstructions(path, "does not exist");
  if (file.kind === "unreadable") throw wrongInstructions(path, file.reason, file.cause);
  if (file.isLonger) throw wrongInstructions(path, `is longer than ${formatBytes(MAX_INSTRUCTIONS_BYTES)}`);
  const { text, isValid } = decodeText(file.bytes);
  if (!isValid) throw wrongInstructions(path, "is not UTF-8 text");
  if (text.trim() === "") throw wrongInstructions(path, "is empty");
  return text;
}

/** Reads so many bytes of a regular file. Never waits: a FIFO is refused. */
export async function readOwnFile(path: string, maxBytes: number): Promise<OwnFile> {
  let file: FileHandle | undefined;
  try {
    file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const stat = await file.stat();
    if (stat.isDirectory()) return { kind: "unreadable", reason: "is a directory" };
    if (!stat.isFile()) return { kind: "unreadable", reason: "is not a regular file" };
    const bytes = await readStart(file, maxBytes + 1);
    return { kind: "read", bytes: bytes.subarray(0, maxBytes), isLonger: bytes.length > maxBytes };
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    if (code === "ENOENT" || code === "ENOTDIR") return { kind: "missing" };
    return { kind: "unreadable", reason: `cannot be read: ${code}`, cause };
  } finally {
    await file?.close();
  }
}

/** Invalid bytes become U+FFFD. */
export function decodeText(bytes: Uint8Array): { text: string; isValid: boolean } {
  try {
    return { text: new TextDecoder("utf-8", { fatal: true }).decode(bytes), isValid: true };
  } catch {
    return { text: new TextDecoder().decode(bytes), isValid: false };
  }
}

/** Without the last character where some of its bytes are missing. */
export function wholeCharacters(bytes: Uint8Array): Uint8Array {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes.at(-back) ?? 0;
    const continues = (byte & 0xc0) === 0x80;
    if (!continues) return characterBytes(byte) > back ? bytes.subarray(0, -back) : bytes;
  }
  return bytes;
}

function characterBytes(firstByte: number): number {
  if (firstByte >= 0xf0) return 4;
  if (firstByte >= 0xe0) return 3;
  return firstByte >= 0xc0 ? 2 : 1;
}

async function readStart(file: FileHandle, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let left = maxBytes;
  while (left > 0) {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(Math.min(left, 64 * 1024)));
    if (bytesRead === 0) break;
    pieces.push(buffer.subarray(0, bytesRead));
    left -= bytesRead;
  }
  return Buffer.concat(pieces);
}

function wrongInstructions(path: string, what: string, cause?: unknown): BrigError {
  return new BrigError(`the instructions file ${path} ${what}`, {
    code: "config.invalid",
    hint: "name a text file with the model's base instructions, or leave model_instructions_file out",
    cause,
  });
}
