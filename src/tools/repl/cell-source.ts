/** `reason` is for the model. */
export type CellSource =
  | { kind: "cell"; source: string; timeoutMs: number }
  | { kind: "invalid"; reason: string };

const DEFAULT_TIMEOUT_MS = 30_000;
const MAX_TIMEOUT_MS = 24 * 60 * 60 * 1000;
const pragma = /^\s*\/\/ *codex-js-repl:(.*)$/;

/** Reads a cell, whose first line may be `// codex-js-repl: timeout_ms=15000`. */
export function readCell(input: string): CellSource {
  const [first = "", ...rest] = input.split("\n");
  const options = pragma.exec(first)?.[1];
  const source = options === undefined ? input : rest.join("\n");
  const timeout = options === undefined ? DEFAULT_TIMEOUT_MS : readTimeout(options.trim());
  if (typeof timeout === "string") return { kind: "invalid", reason: timeout };
  const reason = whyNoSource(source, { hasPragma: options !== undefined });
  return reason === null
    ? { kind: "cell", source, timeoutMs: Math.min(timeout, MAX_TIMEOUT_MS) }
    : { kind: "invalid", reason };
}

function readTimeout(options: string): number | string {
  const [, key, value = ""] = /^(\w+)=(\S*)$/.exec(options) ?? [];
  if (key !== "timeout_ms")
    return `js_repl pragma takes timeout_ms=<milliseconds> and nothing else; got \`${options}\``;
  return /^[1-9]\d{0,9}$/.test(value)
    ? Number(value)
    : `js_repl pragma timeout_ms must be a positive whole number; got \`${value}\``;
}

function whyNoSource(source: string, { hasPragma }: { hasPragma: boolean }): string | null {
  const text = source.trim();
  if (text === "")
    return hasPragma
      ? "js_repl pragma must be followed by JavaScript on the next lines"
      : "js_repl expects raw JavaScript, and the input is empty";
  if (text.startsWith("```"))
    return "js_repl expects raw JavaScript: leave out the markdown fence around the source";
  if (isJson(text))
    return "js_repl expects raw JavaScript: send the source itself, not JSON and not a quoted text";
  return null;
}

/** Only objects and strings count: a number or a list is plausible JavaScript, too. */
function isJson(text: string): boolean {
  if (!/^["{]/.test(text)) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
