import { isBrigError } from "../../../errors.js";
import type { SecretMask } from "../../egress/secrets/secret-mask.js";
import { isGone } from "../../files/file-request.js";
import type { FileState } from "../../tree/tree-state.js";
import type { HostFile, LiveChanges } from "../live-changes.js";
import type { ReadLimit, SeenChange } from "../seen-change.js";
import { isRefusedByGit } from "./git-names.js";
import { type PatchedPath, type PatchSide, unifiedText } from "./unified-text.js";

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
  const isSecret = isBinary && mask !== undefined && sides.some(({ content }) => isMasked(content, mask));
  if (isRefusedByGit(path, { isLink }) || isSecret) return { text: null, isBinary, path };
  return { text: mask?.text(text) ?? text, isBinary, path };
}

function isMasked(content: Buffer, mask: SecretMask): boolean {
  return !mask.bytes(content).equals(content);
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
