import type { Readable } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { nullish, object, read, type Shaped, string } from "../../../lib/json/json-shape.js";

const message = object({
  stream: nullish(string),
  status: nullish(string),
  id: nullish(string),
  progress: nullish(string),
  error: nullish(string),
});

/** One line of the engine's progress reports. */
export type ProgressLine = { kind: "progress" | "error"; text: string };

/** Reads the engine's progress stream: one JSON object per line, with parts of lines of a build's output. */
export async function* progressLines(reply: Readable): AsyncGenerator<ProgressLine> {
  let unfinished = "";
  for await (const json of lines(reply)) {
    const said = read(message, JSON.parse(json));
    if (said.error) {
      yield { kind: "error", text: said.error.trim() };
      return;
    }
    const pieces = (unfinished + asText(said)).split("\n");
    unfinished = pieces.pop() ?? "";
    for (const text of pieces.map(asShown)) if (text !== "") yield { kind: "progress", text };
  }
  if (asShown(unfinished) !== "") yield { kind: "progress", text: asShown(unfinished) };
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
