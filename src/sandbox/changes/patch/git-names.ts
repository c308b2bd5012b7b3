import { decodeUtf8 } from "../../../lib/utf8.js";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const DELETE = 0x7f;
const BLANK = 0x20;

/** The letters that follow a backslash. */
const escapes: ReadonlyMap<number, string> = new Map([
  [0x07, "a"],
  [0x08, "b"],
  [0x09, "t"],
  [0x0a, "n"],
  [0x0b, "v"],
  [0x0c, "f"],
  [0x0d, "r"],
  [QUOTE, '"'],
  [BACKSLASH, "\\"],
]);

/** A path as git writes it in a patch: in quotes if it has control characters, or bytes that are no text. */
export function gitName(prefix: "a/" | "b/", path: Uint8Array | string): string {
  const bytes = Buffer.from(path as Uint8Array);
  const decoded = decodeUtf8(bytes);
  const isSpecial = (byte: number) => byte < BLANK || byte === DELETE || byte === QUOTE || byte === BACKSLASH;
  if (decoded.kind === "text" && !bytes.some(isSpecial)) return prefix + decoded.text;
  return `"${prefix}${Array.from(bytes, quoted).join("")}"`;
}

function quoted(byte: number): string {
  const letter = escapes.get(byte);
  if (letter !== undefined) return `\\${letter}`;
  if (byte >= BLANK && byte < DELETE) return String.fromCharCode(byte);
  return `\\${byte.toString(8).padStart(3, "0")}`;
}

/**
 * Whether `git apply` refuses a whole patch because of this path: it could be a repository's own, also on file systems
 * of other systems, or a symbolic link that git would take its modules from.
 */
export function isRefusedByGit(path: Uint8Array, { isLink }: { isLink: boolean }): boolean {
  const names = Buffer.from(path).toString("latin1").split(/[/\\]/);
  const isOwn = (name: string) => /^(\.git|git~1)[ .]*(:|$)/i.test(name);
  const isModules = (name: string) => /^(\.gitmodules|gitmod~[1-4]|gi7eba~[0-9])[ .]*(:|$)/i.test(name);
  return names.some((name) => isOwn(name) || (isLink && isModules(name)));
}
