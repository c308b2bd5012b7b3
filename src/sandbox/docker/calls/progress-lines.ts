import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { anything, nullish, object, read, type Shaped, string } from "../../../lib/json/json-shape.js";
import { BuildTrace, TRACE_ID, UnfinishedLine } from "./build-trace.js";
import { PullBytes, type PulledBytes } from "./pull-bytes.js";

const message = object({
  stream: nullish(string),
  status: nullish(string),
  id: nullish(string),
  progress: nullish(string),
  /** A build and a push have others, of which nothing is read. */
  progressDetail: nullish(object({ current: nullish(anything), total: nullish(anything) })),
  error: nullish(string),
  aux: nullish(anything),
});

/** One line of the engine's progress reports. */
export type ProgressLine = {
  kind: "progress" | "error";
  text: string;
  /** How far a pull is; only with a line about one of its layers. */
  pulled?: PulledBytes;
};

/** Reads the engine's progress stream: one JSON object per line, with parts of lines of a build's output. */
export async function* progressLines(reply: Readable): AsyncGenerator<ProgressLine> {
  const unfinished = new UnfinishedLine();
  const trace = new BuildTrace();
  const bytes = new PullBytes();
  for await (const json of lines(reply)) {
    const said = read(message, JSON.parse(json));
    if (said.id === TRACE_ID && typeof said.aux === "string") {
      yield* asProgress(trace.linesOf(said.aux));
      continue;
    }
    if (said.error) {
      yield { kind: "error", text: said.error.trim() };
      return;
    }
    const pulled = bytes.take(layerOf(said));
    for (const line of asProgress(unfinished.push(asText(said))))
      yield pulled === null ? line : { ...line, pulled };
  }
  yield* asProgress([...trace.rest(), unfinished.text]);
}

function layerOf({ id, status, progressDetail }: Shaped<typeof message>) {
  const { current, total } = progressDetail ?? {};
  return { id: id ?? "", status: status ?? "", current: asNumber(current), total: asNumber(total) };
}

function asNumber(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function asProgress(lines: readonly string[]): ProgressLine[] {
  const shown = lines.map(asShown).filter((text) => text !== "");
  return shown.map((text) => ({ kind: "progress", text }));
}

/** The line as a terminal would show it: a carriage return overwrites what is before it. */
function asShown(line: string): string {
  const plain = stripVTControlCharacters(line).trimEnd();
  return plain.slice(plain.lastIndexOf("\r") + 1);
}

function asText({ stream, status, id, progress }: Shaped<typeof message>): string {
  if (stream) return stream;
  if (!status) return "";
  return `${id ? `${id}: ` : ""}${status}${progress ? ` ${progress}` : ""}\n`;
}

async function* lines(reply: Readable): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let unfinished = "";
  for await (const chunk of reply as AsyncIterable<Uint8Array>) {
    const pieces = (unfinished + decoder.decode(chunk, { stream: true })).split("\n");
    unfinished = pieces.pop() ?? "";
    yield* pieces.filter((line) => line.trim() !== "");
  }
  if (unfinished.trim() !== "") yield unfinished;
}
