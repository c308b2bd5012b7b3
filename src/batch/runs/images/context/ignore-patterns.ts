import { posix } from "node:path";
import { BrigError } from "../../../../errors.js";

/** The patterns of a `.dockerignore` file, in order: the last one that matches decides. */
export interface IgnorePatterns {
  /** `path` is relative to the context, with slashes. */
  ignores(path: string): boolean;
  /** False if everything below an ignored directory is ignored too. */
  readonly hasExceptions: boolean;
}

interface Pattern {
  isException: boolean;
  expression: RegExp;
}

/** These files are always sent: the engine itself leaves them out of the image where the patterns say so. */
export function parseIgnorePatterns(text: string, alwaysSent: readonly string[]): IgnorePatterns {
  const patterns = [
    ...text
      .replace(/^\uFEFF/, "")
      .split("\n")
      .flatMap(parseLine),
    ...alwaysSent.map((path) => ({ isException: true, expression: literally(path) })),
  ];
  return {
    hasExceptions: patterns.some(({ isException }) => isException),
    ignores(path) {
      const names = path.split("/");
      // A pattern that matches a directory matches everything in it.
      const candidates = names.map((_, index) => names.slice(0, index + 1).join("/"));
      const last = patterns.findLast(({ expression }) => candidates.some((one) => expression.test(one)));
      return last !== undefined && !last.isException;
    },
  };
}

function parseLine(line: string, index: number): Pattern[] {
  // Only a number sign in the first column begins a comment.
  if (line.startsWith("#")) return [];
  const trimmed = line.trim();
  const isException = trimmed.startsWith("!");
  const written = isException ? trimmed.slice(1).trim() : trimmed;
  if (written === "") {
    if (isException) throw invalid(line, index);
    return [];
  }
  const pattern = posix
    .normalize(written)
    .replace(/^\/(?=.)/, "")
    .replace(/(?<=.)\/$/, "");
  // A pattern for the context itself matches nothing, as in Docker.
  if (pattern === "." || pattern === "/") return [];
  try {
    return [{ isException, expression: new RegExp(`^${sourceOf(pattern)}$`, "s") }];
  } catch (cause) {
    throw invalid(line, index, cause);
  }
}

const piece = /\*\*\/?|\*|\?|\\.|\[(?:\^?)(?:\\.|[^\]\\])+\]|./gs;

/** Translates Docker's wildcards: `*` and `?` match no slash, `**` matches any number of directories. */
function sourceOf(pattern: string): string {
  const pieces = pattern.match(piece) ?? [];
  return pieces
    .map((text, index) => {
      if (text.startsWith("**")) return index === pieces.length - 1 ? ".*" : "(?:.*/)?";
      if (text === "*") return "[^/]*";
      if (text === "?") return "[^/]";
      if (text === "[") throw new SyntaxError("a bracket is not closed");
      if (text.startsWith("[")) return text;
      return escaped(text.startsWith("\\") && text.length > 1 ? text.slice(1) : text);
    })
    .join("");
}

function literally(path: string): RegExp {
  return new RegExp(`^${escaped(path)}$`);
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function invalid(line: string, index: number, cause?: unknown): BrigError {
  return new BrigError(`line ${index + 1} of .dockerignore is no valid pattern: ${JSON.stringify(line)}`, {
    code: "image.build-failed",
    hint: "close brackets, and give each exclamation mark a pattern",
    cause,
  });
}
