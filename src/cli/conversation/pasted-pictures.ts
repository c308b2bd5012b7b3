import { closeSync, constants, openSync, readSync } from "node:fs";
import { basename, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { imageType } from "../../lib/image-type.js";
import { fitWidth } from "../../lib/terminal/display-width.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import { imageSize } from "../../tools/index.js";
import type { DraftElement } from "./input/draft.js";

type Picture = DraftElement & { kind: "picture" };

/** Going through a longer paste would hold up the keys. */
const MAX_PASTE_CHARS = 16_384;
const MAX_PICTURES = 20;
/** The size of a JPEG comes after its metadata, which may have a small picture of its own. */
const HEADER_BYTES = 1024 * 1024;
const NAME_COLUMNS = 40;

/**
 * The pictures that a pasted text names, if it names nothing else: paths as a person copies them, or as a terminal
 * or a file manager writes those of files that are dropped. Null for any other text.
 */
export function pastedPictures(text: string, cwd: string): Picture[] | null {
  const trimmed = text.trim();
  if (trimmed.length > MAX_PASTE_CHARS || !/\.(?:png|jpe?g|gif|webp)["']?$/i.test(trimmed)) return null;
  const words = shellWords(trimmed);
  const pictures = words === null ? [] : words.map((word) => pictureAt(word, cwd));
  if (pictures.length > 0 && pictures.every((picture) => picture !== null)) return pictures;
  // The path of a file whose name has blanks, copied as it is.
  const whole = trimmed.includes("\n") ? null : pictureAt(trimmed, cwd);
  return whole === null ? null : [whole];
}

/** Splits a text as a shell does, without expanding anything. Null if it is not such a text, or has too many words. */
function shellWords(text: string): string[] | null {
  const words: string[] = [];
  const word = /(?:"(?:[^"\\]|\\.)*"|'[^']*'|\\.|[^\s"'\\])+/gsy;
  for (let at = 0; at < text.length; at = word.lastIndex) {
    word.lastIndex = at + (/^\s*/.exec(text.slice(at))?.[0].length ?? 0);
    const found = word.exec(text)?.[0];
    if (found === undefined || words.length >= MAX_PICTURES) return null;
    words.push(unquoted(found));
  }
  return words;
}

function unquoted(word: string): string {
  return word.replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(.)/gs, (_, double, single, escaped) =>
    double === undefined ? (single ?? escaped) : double.replace(/\\(["\\$`])/g, "$1"),
  );
}

function pictureAt(word: string, cwd: string): Picture | null {
  const path = hostPath(word, cwd);
  const header = path === null ? null : readHeader(path);
  const type = header === null ? null : imageType(header);
  if (path === null || header === null || type === null) return null;
  const size = imageSize(header, type);
  const name = fitWidth(neutraliseLine(basename(path)), NAME_COLUMNS);
  const sides = size === null ? "" : ` ${size.width}x${size.height}`;
  return { kind: "picture", path, label: `[picture ${name}${sides}]` };
}

function hostPath(word: string, cwd: string): string | null {
  if (!word.startsWith("file:")) return resolve(cwd, word);
  try {
    return fileURLToPath(word);
  } catch {
    return null;
  }
}

/** Null for what cannot be read at a position, such as a pipe. Opening does not wait for the writer of one. */
function readHeader(path: string): Buffer | null {
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    try {
      const header = Buffer.alloc(HEADER_BYTES);
      return header.subarray(0, readSync(file, header, 0, HEADER_BYTES, 0));
    } finally {
      closeSync(file);
    }
  } catch {
    return null;
  }
}
