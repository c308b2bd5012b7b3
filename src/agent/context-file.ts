import { BrigError } from "../errors.js";
import { readTextFile } from "../lib/bounded-file.js";

/** A model reads them with every request: more than this is a mistake. */
const MAX_INSTRUCTIONS_BYTES = 256 * 1024;

/**
 * Reads the base instructions from `model_instructions_file` or `--instructions-file`. One that is missing, empty, longer than
 * 256 KiB, no text, or no regular file is `config.invalid`.
 */
export async function readInstructionsFile(path: string): Promise<string> {
  const file = await readTextFile(path, MAX_INSTRUCTIONS_BYTES);
  if (file.kind === "missing") throw wrongInstructions(path, "does not exist");
  if (file.kind === "unreadable") throw wrongInstructions(path, file.reason, file.cause);
  if (file.text.trim() === "") throw wrongInstructions(path, "is empty");
  return file.text;
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

function wrongInstructions(path: string, what: string, cause?: unknown): BrigError {
  return new BrigError(`the instructions file ${path} ${what}`, {
    code: "config.invalid",
    hint: "name a text file with the model's base instructions, or leave model_instructions_file out",
    cause,
  });
}
