import { jsonText } from "../lib/json/json-text.js";
import { wrapLines } from "../lib/terminal/break-columns.js";
import { formatTable } from "../lib/terminal/table.js";
import type { CliContext, OutputStream } from "./context.js";

/** Whether what is written to a stream is coloured. */
export function isColoured({ isTTY }: OutputStream, environment: CliContext["environment"]): boolean {
  const { forbidsColor, forcesColor, isContinuousIntegration } = environment;
  if (forbidsColor || forcesColor) return forcesColor;
  return isTTY === true && !isContinuousIntegration;
}

/** Whether progress on stderr is coloured. */
export function usesColour({ stderr, environment }: CliContext): boolean {
  return isColoured(stderr, environment);
}

/** Writes and waits until the bytes are accepted, so that a fast command does not outrun a slow reader. */
export async function write(stream: OutputStream, bytes: string | Uint8Array): Promise<void> {
  if (stream.destroyed) return;
  // A closed stream emits an error event, which the host handles; here it only ends the wait.
  await new Promise<void>((resolve) => {
    stream.write(bytes, () => resolve());
  });
}

/** Writes a message of brig, wrapped between words when the stream is a terminal. */
export async function say(stream: OutputStream, text: string): Promise<void> {
  await write(stream, fitted(stream, text));
}

/** Wraps a message of brig between words when the stream is a terminal. */
export function fitted({ isTTY, columns }: OutputStream, text: string): string {
  return isTTY === true && columns ? wrapLines(text, columns) : text;
}

export async function flush(stream: OutputStream): Promise<void> {
  await write(stream, "");
}

/** Writes a table: within the width of a terminal; in a pipe or file, one line for each row. */
export async function writeTable(stream: OutputStream, rows: readonly (readonly string[])[]): Promise<void> {
  await write(stream, formatTable(rows, { columns: stream.isTTY === true ? stream.columns : undefined }));
}

export async function writeJson(stream: OutputStream, value: unknown): Promise<void> {
  await write(stream, `${jsonText(value, 2)}\n`);
}
