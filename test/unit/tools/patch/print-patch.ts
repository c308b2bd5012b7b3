import {
  ADD,
  ANCHOR,
  BEGIN,
  type Change,
  type Chunk,
  DELETE,
  END,
  END_OF_FILE,
  ENVIRONMENT,
  type Hunk,
  MOVE,
  type Patch,
  UPDATE,
} from "../../../../src/tools/patch/format/patch.js";

/** The patch as text, which parses to the same patch. No final newline. */
export function printPatch({ environmentId, hunks }: Patch): string {
  const environment = environmentId === null ? [] : [`${ENVIRONMENT} ${environmentId}`];
  return [BEGIN, ...environment, ...hunks.flatMap(printHunk), END].join("\n");
}

function printHunk(hunk: Hunk): string[] {
  switch (hunk.kind) {
    case "add":
      return [`${ADD}${hunk.path}`, ...hunk.lines.map((line) => `+${line}`)];
    case "delete":
      return [`${DELETE}${hunk.path}`];
    case "update":
      return [
        `${UPDATE}${hunk.path}`,
        ...(hunk.moveTo === null ? [] : [`${MOVE}${hunk.moveTo}`]),
        ...hunk.chunks.flatMap(printChunk),
      ];
  }
}

function printChunk({ anchor, changes, isAtEnd }: Chunk): string[] {
  return [
    anchor === null ? ANCHOR : `${ANCHOR} ${anchor}`,
    ...changes.map(({ kind, text }) => `${signs[kind]}${text}`),
    ...(isAtEnd ? [END_OF_FILE] : []),
  ];
}

const signs: Record<Change["kind"], string> = { context: " ", add: "+", remove: "-" };
