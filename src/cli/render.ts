import { jsonText } from "../lib/json-text.js";
import { wrapLines } from "../lib/terminal/break-columns.js";
import { formatTable } from "../lib/terminal/table.js";
import type { OutputStream } from "./context.js";

/** Writes and waits until the bytes are taken, so that a fast command does not outrun a slow reader. */
export async function write(stream: OutputStream, bytes: string | Uint8Array): Promise<void> {
  if (stream.destroyed) return;
  // A reader that went away is told of by the stream's error event; here it only ends the wait.
  await new Promise<void>((resolve) => {
    stream.write(bytes, () => resolve());
  });
}

/** Writes brig's own words, on a terminal without breaking one of them that fits on a line. */
export async function say(stream: OutputStream, text: string): Promise<void> {
  await write(stream, fitted(stream, text));
}

/** Brig's own words as they are written there. */
export function fitted({ isTTY, columns }: OutputStream, text: string): string {
  return isTTY === true && columns ? wrapLines(text, columns) : text;
}

/** Waits until everything written so far is taken. */
export async function flush(stream: OutputStream): Promise<void> {
  await write(stream, "");
}

/** A table on stdout: on a terminal within its width, elsewhere a line for each row. */
export async function writeTable(stream: OutputStream, rows: readonly (readonly string[])[]): Promise<void> {
  await write(stream, formatTable(rows, { columns: stream.isTTY === true ? stream.columns : undefined }));
}

/** One JSON document on stdout. Every result that a program reads goes through here. */
export async function writeJson(stream: OutputStream, value: unknown): Promise<void> {
  await write(stream, `${jsonText(value, 2)}\n`);
}
