import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import { parseToml } from "../../agent/index.js";
import { BrigError } from "../../errors.js";

/** The name of brig's environment in Codex. */
const ID = "brig";
const ARGS = ["exec-server", "--listen", "stdio"];

const fileSchema = z.looseObject({
  default: z.string().optional(),
  include_local: z.boolean().optional(),
  environments: z.array(z.looseObject({ id: z.string() })).optional(),
});
type EnvironmentsFile = z.infer<typeof fileSchema>;

export interface ChangedFile {
  text: string;
  /** The changes, one sentence each; empty if the text needed none. */
  changes: string[];
}

/**
 * Makes brig the environment that Codex uses. Everything else in the text stays as it is. Error: `config.invalid` when the
 * text is not in Codex's format, or is written in a way that cannot be changed safely.
 */
export function addBrigEnvironment(
  current: string,
  { program, file }: { program: string; file: string },
): ChangedFile {
  const before = parseFile(current, file);
  const wanted = wantedFile(before, program);
  if (isDeepStrictEqual(before, wanted)) return { text: current, changes: [] };
  const withoutLocal = setTopLevel(current, "include_local", "false");
  const text = setEnvironment(setTopLevel(withoutLocal, "default", JSON.stringify(ID)), program);
  // The text was changed line by line. It is used only if parsing it gives the intended document.
  if (!isDeepStrictEqual(tryParse(text, file), wanted)) throw notChangeable(file, program);
  return { text, changes: describeChanges(before, program) };
}

/** The lines for somebody who has no such file yet. */
function newLines(program: string): string {
  return `[[environments]]\nid = "${ID}"\nprogram = ${JSON.stringify(program)}\nargs = ${argsLine()}\n`;
}

function wantedFile(before: EnvironmentsFile, program: string): EnvironmentsFile {
  const environments = before.environments ?? [];
  const known = environments.find(({ id }) => id === ID);
  const {
    url: _url,
    auth_bearer_token: _token,
    connect_timeout_sec: _timeout,
    ...kept
  } = known ?? { id: ID };
  const ours = { ...kept, id: ID, program, args: ARGS };
  return {
    ...before,
    default: ID,
    include_local: false,
    environments:
      known === undefined ? [...environments, ours] : environments.map((one) => (one === known ? ours : one)),
  };
}

function parseFile(text: string, file: string): EnvironmentsFile {
  const parsed = fileSchema.safeParse(plain(parseToml(text, file).table));
  if (parsed.success) return parsed.data;
  throw new BrigError(`${file} is not what Codex reads:\n${z.prettifyError(parsed.error)}`, {
    code: "config.invalid",
    hint: "repair it, or move it away and run this again",
    cause: parsed.error,
  });
}

function tryParse(text: string, file: string): unknown {
  try {
    return parseFile(text, file);
  } catch {
    return undefined;
  }
}

/** Gives all objects ordinary prototypes, so that two documents can be compared. */
function plain(document: unknown): unknown {
  return structuredClone(document);
}

function setTopLevel(text: string, key: string, value: string): string {
  const lines = text.split("\n");
  const firstTable = lines.findIndex((line) => /^\s*\[/.test(line));
  const end = firstTable === -1 ? lines.length : firstTable;
  const at = lines.slice(0, end).findIndex((line) => isKey(line, key));
  if (at !== -1) return lines.with(at, withValue(lines[at] ?? "", value)).join("\n");
  return `${key} = ${value}\n${text}`;
}

function setEnvironment(text: string, program: string): string {
  const lines = text.split("\n");
  const starts = lines.flatMap((line, at) => (/^\s*\[\[\s*environments\s*\]\]/.test(line) ? [at] : []));
  const start = starts.find((at) =>
    blockOf(lines, at).some((line) => /^\s*id\s*=\s*["']brig["']/.test(line)),
  );
  if (start === undefined) {
    const separator = text === "" || text.endsWith("\n\n") ? "" : text.endsWith("\n") ? "\n" : "\n\n";
    return `${text}${separator}${newLines(program)}`;
  }
  const block = blockOf(lines, start);
  let changed = block.filter(
    (line) => !["url", "auth_bearer_token", "connect_timeout_sec"].some((key) => isKey(line, key)),
  );
  for (const [key, value] of [
    ["args", argsLine()],
    ["program", JSON.stringify(program)],
  ] as const) {
    const at = changed.findIndex((line) => isKey(line, key));
    const idAt = changed.findIndex((line) => isKey(line, "id"));
    changed =
      at === -1
        ? changed.toSpliced(idAt + 1, 0, `${key} = ${value}`)
        : changed.with(at, withValue(changed[at] ?? "", value));
  }
  return lines.toSpliced(start, block.length, ...changed).join("\n");
}

/** The range of lines from the header of a table up to the next header. */
function blockOf(lines: readonly string[], start: number): string[] {
  const next = lines.findIndex((line, at) => at > start && /^\s*\[/.test(line));
  return lines.slice(start, next === -1 ? lines.length : next);
}

function isKey(line: string, key: string): boolean {
  return new RegExp(`^\\s*(?:${key}|"${key}")\\s*=`).test(line);
}

/** The comment behind the old value stays. */
function withValue(line: string, value: string): string {
  const comment = /=\s*(?:"[^"\\]*"|'[^']*'|\[[^\]#]*\]|[^#"'[]*?)(\s*#.*)$/.exec(line)?.[1] ?? "";
  return `${line.slice(0, line.indexOf("="))}= ${value}${comment}`;
}

function argsLine(): string {
  return `[${ARGS.map((arg) => JSON.stringify(arg)).join(", ")}]`;
}

function describeChanges(before: EnvironmentsFile, program: string): string[] {
  const changes: string[] = [];
  if (before.default !== ID) changes.push(`default = "${ID}"${wasText(before.default)}`);
  if (before.include_local !== false)
    changes.push(
      `include_local = false${wasText(before.include_local)}: no command runs on this machine itself`,
    );
  const known = before.environments?.some(({ id }) => id === ID) ?? false;
  changes.push(`environment "${ID}" ${known ? "changed" : "added"}: ${[program, ...ARGS].join(" ")}`);
  return changes;
}

function wasText(value: string | boolean | undefined): string {
  return value === undefined ? "" : ` (was ${JSON.stringify(value)})`;
}

function notChangeable(file: string, program: string): BrigError {
  return new BrigError(`${file} is written in a way that is not changed safely by a program`, {
    code: "config.invalid",
    hint: `write these lines to it yourself:\ndefault = "${ID}"\ninclude_local = false\n${newLines(program)}`,
  });
}
