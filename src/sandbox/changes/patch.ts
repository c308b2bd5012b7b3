import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";
import { formatPatch, OMIT_HEADERS, type StructuredPatchHunk, structuredPatch } from "diff";
import { isBrigError } from "../../errors.js";
import { decodeUtf8 } from "../../lib/utf8.js";
import type { SecretMask } from "../egress/secrets/secret-mask.js";
import { isGone } from "../files/file-request.js";
import type { FileState } from "../tree/tree-changes.js";
import type { HostFile, LiveChanges } from "./live-changes.js";
import type { ReadLimit, SeenChange } from "./workspace-change.js";

/** The patch of one change, or the reason why there is none. */
export type MadePatch =
  | { kind: "patch"; text: string; isBinary: boolean }
  /** Git's format has no such change, or the patch may not be shown. */
  | { kind: "none"; isBinary: boolean }
  | { kind: "too-large" }
  /** One of the two files was removed or replaced since the scan, so this is no change any more, or another one. */
  | { kind: "gone" };

interface PatchRequest {
  maxFileBytes: number;
  /** The most bytes of the whole patch. */
  maxBytes: number;
  mask: SecretMask | undefined;
  signal: AbortSignal | undefined;
}

const noPatch: MadePatch = { kind: "none", isBinary: false };

/** The number of files of a directory that are read at the same time. */
const READS_AT_ONCE = 8;

/** Whether a patch may have it. Git records no other kinds of files, and obeys no patch of some names. */
export function hasPatch({ path, before, now }: SeenChange): boolean {
  const isLink = before?.type === "symlink" || now?.type === "symlink";
  if (isRefusedByGit(path, { isLink })) return false;
  return inPatches(before) || inPatches(now) || losesDirectory({ before, now });
}

/**
 * Makes the patch of one change. Where the host's directory is gone it deletes each file in it, since git knows no
 * directories. Nothing can take the place of one that git does not empty. Errors: those of reading.
 */
export async function patchOf(
  source: LiveChanges,
  change: SeenChange,
  request: PatchRequest,
): Promise<MadePatch> {
  if (!hasPatch(change)) return noPatch;
  const { maxFileBytes, signal } = request;
  if (isTooLarge(change.before, maxFileBytes) || isTooLarge(change.now, maxFileBytes))
    return { kind: "too-large" };
  try {
    const lost = losesDirectory(change) ? await lostFiles(source, change.path, request) : [];
    if (lost === null) return { kind: "too-large" };
    const own = await sidesOf(source, change, { maxBytes: maxFileBytes, signal });
    if (own !== null && losesDirectory(change)) {
      const isLeft = lost.some(({ text }) => text === null);
      if (isLeft || !(await source.hasOnlyFiles(change.path, signal))) return noPatch;
    }
    return joined([...lost, ...(own === null ? [] : [patchPiece(own, request.mask)])], request);
  } catch (error) {
    // The file has grown since the scan.
    if (isBrigError(error, "file.too-large")) return { kind: "too-large" };
    if (isGone(error)) return { kind: "gone" };
    throw error;
  }
}

function inPatches(state: Pick<FileState, "type"> | null): boolean {
  return state?.type === "file" || state?.type === "symlink";
}

function losesDirectory({ before, now }: Pick<SeenChange, "before" | "now">): boolean {
  return before?.type === "directory" && now?.type !== "directory";
}

function isTooLarge(state: FileState | null, maxBytes: number): boolean {
  return state?.type === "file" && state.sizeBytes > maxBytes;
}

/** Null if there is no file on either side. */
async function sidesOf(
  source: LiveChanges,
  change: SeenChange,
  limit: ReadLimit,
): Promise<PatchedPath | null> {
  const { path, before, now } = change;
  const [old, current] = await Promise.all([
    inPatches(before) ? source.readHost(change, limit) : null,
    now?.type === "file" ? source.read(change, limit) : (now?.linkTarget ?? null),
  ]);
  if (old === null && current === null) return null;
  return { path, before: sideOf(before, old), after: sideOf(now, current) };
}

function sideOf(state: Pick<FileState, "type" | "mode"> | null, content: Buffer | null): PatchSide | null {
  if (state === null || content === null) return null;
  if (state.type === "symlink") return { gitMode: "120000", content };
  return { gitMode: state.mode & 0o100 ? "100755" : "100644", content };
}

interface PatchPiece {
  /** Null for a content that may not be in a patch. */
  text: string | null;
  isBinary: boolean;
  path: Buffer;
}

/** The deletions of all files in a directory; null if they are too large. */
async function lostFiles(
  source: LiveChanges,
  directory: Buffer,
  { maxFileBytes, maxBytes, mask, signal }: PatchRequest,
): Promise<PatchPiece[] | null> {
  const files = await source.hostFilesBelow(directory, signal);
  if (files.some(({ state }) => isTooLarge(state, maxFileBytes))) return null;
  const contentOf = async ({ path, state: { linkTarget } }: HostFile) =>
    linkTarget ?? (await source.readHostFile(path, { maxBytes: maxFileBytes, signal }));
  const pieces: PatchPiece[] = [];
  let leftBytes = maxBytes;
  for (let at = 0; at < files.length; at += READS_AT_ONCE) {
    const some = files.slice(at, at + READS_AT_ONCE);
    const contents = await Promise.all(some.map(contentOf));
    for (const [index, { path, state }] of some.entries()) {
      const before = sideOf(state, contents[index] ?? null);
      const piece = patchPiece({ path, before, after: null }, mask);
      leftBytes -= Buffer.byteLength(piece.text ?? "");
      if (leftBytes < 0) return null;
      pieces.push(piece);
    }
  }
  return pieces;
}

function patchPiece(patched: PatchedPath, mask: SecretMask | undefined): PatchPiece {
  const path = Buffer.from(patched.path as Uint8Array);
  const sides = [patched.before, patched.after].filter((side) => side !== null);
  const isLink = sides.some(({ gitMode }) => gitMode === "120000");
  const { kind, text } = unifiedText(patched);
  const isBinary = kind === "binary";
  // In a packed content no secret can be masked, and one that was masked before would not fit the file.
  const isSecret =
    isBinary && mask !== undefined && sides.some(({ content }) => !mask.bytes(content).equals(content));
  if (isRefusedByGit(path, { isLink }) || isSecret) return { text: null, isBinary, path };
  return { text: mask?.text(text) ?? text, isBinary, path };
}

function joined(pieces: readonly PatchPiece[], { maxBytes }: PatchRequest): MadePatch {
  const isBinary = pieces.some((piece) => piece.isBinary);
  if (pieces.every(({ text }) => text === null)) return { kind: "none", isBinary };
  // Git passes over such a line.
  const text = pieces
    .map(({ text, path }) => text ?? `# left out: ${JSON.stringify(path.toString())}\n`)
    .join("");
  return Buffer.byteLength(text) > maxBytes ? { kind: "too-large" } : { kind: "patch", text, isBinary };
}

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
function gitName(prefix: "a/" | "b/", path: Uint8Array | string): string {
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

/** A file or a symbolic link before or after a change. */
export interface PatchSide {
  /** The mode as git writes it: "100644", "100755", or "120000" for a symbolic link, whose content is its target. */
  gitMode: "100644" | "100755" | "120000";
  content: Buffer;
}

interface PatchedPath {
  /** Relative, as bytes or as text. */
  path: Uint8Array | string;
  /** Null stands for a file that does not exist; one of both must exist. */
  before: PatchSide | null;
  after: PatchSide | null;
}

/** The part of a patch that is about one path. Binary is what has a NUL or is not UTF-8, on either side. */
export interface UnifiedText {
  kind: "text" | "binary";
  text: string;
}

const NOTHING = "/dev/null";
const CONTEXT_LINES = 3;
/** Beyond this many added and removed lines, the search for the shortest difference takes too long. */
const MOST_EDITS = 4_000;

/**
 * One path of a patch in git's format, which `git apply` takes. Very different texts are shown as wholly removed and
 * wholly added. A file that has become a symbolic link, or the other way round, is a deletion and an addition, as git
 * writes it. With `binary: "named"`, for people and models, binary contents are left out.
 */
export function unifiedText(
  { path, before, after }: PatchedPath,
  { binary = "whole" }: { binary?: "whole" | "named" } = {},
): UnifiedText {
  if (before !== null && after !== null && isLink(before) !== isLink(after)) {
    const parts = [
      unifiedText({ path, before, after: null }, { binary }),
      unifiedText({ path, before: null, after }, { binary }),
    ];
    const kind = parts.some((part) => part.kind === "binary") ? "binary" : "text";
    return { kind, text: parts.map(({ text }) => text).join("") };
  }
  const [from, to] = [gitName("a/", path), gitName("b/", path)];
  const head = `diff --git ${from} ${to}\n${modeLines(before, after)}`;
  const [old, current] = [textOf(before), textOf(after)];
  if (old === null || current === null) {
    const body =
      binary === "whole"
        ? binaryPatch(before?.content ?? null, after?.content ?? null)
        : `Binary files ${before ? from : NOTHING} and ${after ? to : NOTHING} differ\n`;
    return { kind: "binary", text: head + body };
  }
  const hunks = hunksOf(old, current);
  if (hunks.length === 0) return { kind: "text", text: head };
  const names = `--- ${fileName(from, before)}\n+++ ${fileName(to, after)}\n`;
  const omitted = { oldFileName: "", newFileName: "", oldHeader: undefined, newHeader: undefined };
  return { kind: "text", text: head + names + formatPatch({ ...omitted, hunks }, OMIT_HEADERS) };
}

function isLink({ gitMode }: PatchSide): boolean {
  return gitMode === "120000";
}

function modeLines(before: PatchSide | null, after: PatchSide | null): string {
  if (before === null) return `new file mode ${after?.gitMode}\n`;
  if (after === null) return `deleted file mode ${before.gitMode}\n`;
  return before.gitMode === after.gitMode ? "" : `old mode ${before.gitMode}\nnew mode ${after.gitMode}\n`;
}

/** A tab ends a name that has blanks in it, as git writes it for other programs. */
function fileName(name: string, side: PatchSide | null): string {
  if (side === null) return NOTHING;
  return name.includes(" ") ? `${name}\t` : name;
}

/** Null for a content that is not text. */
function textOf(side: PatchSide | null): string | null {
  if (side === null) return "";
  if (side.content.includes(0)) return null;
  const decoded = decodeUtf8(side.content);
  return decoded.kind === "text" ? decoded.text : null;
}

function hunksOf(before: string, after: string): StructuredPatchHunk[] {
  const options = { context: CONTEXT_LINES, maxEditLength: MOST_EDITS };
  const found = structuredPatch("", "", before, after, undefined, undefined, options);
  if (found !== undefined) return found.hunks;
  // A deletion and an addition, which need no search for what is the same.
  const [removal, addition] = [
    structuredPatch("", "", before, "").hunks,
    structuredPatch("", "", "", after).hunks,
  ];
  const [removed, added] = [removal[0], addition[0]];
  if (removed === undefined || added === undefined) return [...removal, ...addition];
  return [
    {
      oldStart: removed.oldStart,
      oldLines: removed.oldLines,
      newStart: added.newStart,
      newLines: added.newLines,
      lines: [...removed.lines, ...added.lines],
    },
  ];
}

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
function binaryPatch(before: Buffer | null, after: Buffer | null): string {
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
