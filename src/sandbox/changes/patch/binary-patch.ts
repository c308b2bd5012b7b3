import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
/** The number of bytes that a line encodes. */
const LINE_BYTES = 52;
const LETTERS = 26;
/** The name that git gives to what does not exist. */
const NO_BLOB = "0".repeat(40);

/**
 * The rest of a patch, after the lines about modes, for a file that is not text. Null stands for a file that does not
 * exist. As git does, it has the content of both sides, so that the patch can also be taken back.
 */
export function binaryPatch(before: Buffer | null, after: Buffer | null): string {
  const [forward, back] = [after, before].map((content) => literal(content ?? Buffer.alloc(0)));
  return `index ${blobName(before)}..${blobName(after)}\nGIT binary patch\n${forward}\n${back}\n`;
}

/** `git apply` compares it with what it finds, and requires it for a binary patch. */
function blobName(content: Buffer | null): string {
  if (content === null) return NO_BLOB;
  return createHash("sha1").update(`blob ${content.length}\0`).update(content).digest("hex");
}

function literal(content: Buffer): string {
  const packed = deflateSync(content);
  const lines = [`literal ${content.length}\n`];
  for (let at = 0; at < packed.length; at += LINE_BYTES) {
    const bytes = packed.subarray(at, at + LINE_BYTES);
    lines.push(`${lengthLetter(bytes.length)}${base85(bytes)}\n`);
  }
  return lines.join("");
}

/** A to Z for 1 to 26, a to z for 27 to 52. */
function lengthLetter(length: number): string {
  const isShort = length <= LETTERS;
  return String.fromCharCode(isShort ? 0x40 + length : 0x60 + length - LETTERS);
}

/** Five digits for each four bytes; the last four are filled up with zeros. */
function base85(bytes: Buffer): string {
  const whole = Buffer.alloc(Math.ceil(bytes.length / 4) * 4);
  bytes.copy(whole);
  let text = "";
  for (let at = 0; at < whole.length; at += 4) {
    let value = whole.readUInt32BE(at);
    let digits = "";
    for (let place = 0; place < 5; place++) {
      digits = (DIGITS[value % DIGITS.length] ?? "") + digits;
      value = Math.floor(value / DIGITS.length);
    }
    text += digits;
  }
  return text;
}
