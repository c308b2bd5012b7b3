import { parsePatch } from "./patch-format.js";

export type PatchCommand =
  /** The command applies a patch. Relative paths start at `directory`, relative to the working directory. */
  | { kind: "patch"; patch: string; directory: string | null }
  /** The patch itself instead of a command. `barePatchReason` is the answer for the model. */
  | { kind: "bare-patch" }
  | { kind: "other" };

export const barePatchReason =
  'patch detected without explicit call to apply_patch. Rerun as ["apply_patch", "<patch>"]';

const patchPrograms: ReadonlySet<string> = new Set(["apply_patch", "applypatch"]);

const scriptFlags: Readonly<Record<string, readonly string[]>> = {
  bash: ["-lc", "-c"],
  zsh: ["-lc", "-c"],
  sh: ["-lc", "-c"],
  pwsh: ["-Command"],
  powershell: ["-Command"],
  cmd: ["/c"],
};

/**
 * Recognises a command that only applies a patch: `apply_patch PATCH`, or a shell whose script is a single
 * heredoc for `apply_patch`.
 */
export function recognisePatchCommand(argv: readonly string[]): PatchCommand {
  const [program = "", ...args] = argv;
  if (args.length === 0) return isPatch(program) ? { kind: "bare-patch" } : { kind: "other" };
  if (args.length === 1 && patchPrograms.has(program))
    return { kind: "patch", patch: args[0] ?? "", directory: null };
  const script = scriptOf(program, args);
  return script === null ? { kind: "other" } : recognisePatchScript(script);
}

export function recognisePatchScript(script: string): PatchCommand {
  const [head, directory = null, dash, tag] = matchHead(script);
  if (head === undefined || tag === undefined)
    return isPatch(script) ? { kind: "bare-patch" } : { kind: "other" };
  const body = heredocBody(script.slice(head.length), { tag, dropsTabs: dash === "-" });
  return body === null ? { kind: "other" } : { kind: "patch", patch: body, directory };
}

function isPatch(text: string): boolean {
  return parsePatch(text).kind === "patch";
}

function scriptOf(program: string, args: readonly string[]): string | null {
  const name = (program.split(/[/\\]/).at(-1) ?? "").replace(/\.[^.]*$/, "").toLowerCase();
  const flags = Object.hasOwn(scriptFlags, name) ? scriptFlags[name] : undefined;
  const [flag = "", script, ...rest] =
    flags?.includes("-Command") && args[0] === "-NoProfile" ? args.slice(1) : args;
  return flags?.includes(flag) && script !== undefined && rest.length === 0 ? script : null;
}

const blank = String.raw`(?:[ \t]|\\\r?\n)`;
/** A word that the shell does not expand and that is not an option. */
const bareWord = String.raw`[^\s'"\\$${"`"}|&;()<>*?[\]{}~#!-][^\s'"\\$${"`"}|&;()<>*?[\]{}!]*`;
const quotedDirectory = String.raw`'(?<single>[^']*)'|"(?<double>[^"$${"`"}\\!]+)"|(?<bare>${bareWord})`;
const quotedTag = String.raw`'(?<singleTag>[^'\n]+)'|"(?<doubleTag>[^"$${"`"}\\\n]+)"|\\?(?<bareTag>[^\s'"\\$${"`"}|&;()<>#]+)`;
const headPattern = new RegExp(
  String.raw`^\s*(?:cd${blank}+(?:${quotedDirectory})${blank}*&&\s*)?(?:apply_patch|applypatch)${blank}*<<(?<dash>-?)${blank}*(?:${quotedTag})[ \t]*\r?\n`,
);

/** The text before the heredoc, the directory of `cd`, the `-` of `<<-`, and the tag of the heredoc. */
function matchHead(script: string): [head?: string, directory?: string | null, dash?: string, tag?: string] {
  const match = headPattern.exec(script);
  if (match?.groups === undefined) return [];
  const { single, double, bare, dash, singleTag, doubleTag, bareTag } = match.groups;
  return [match[0], single ?? double ?? bare ?? null, dash, singleTag ?? doubleTag ?? bareTag];
}

/** Null if something follows the heredoc. As in a shell, a missing end means the end of the script. */
function heredocBody(text: string, { tag, dropsTabs }: { tag: string; dropsTabs: boolean }): string | null {
  const lines = text.split("\n").map((line) => (dropsTabs ? line.replace(/^\t+/, "") : line));
  const end = lines.findIndex((line) => line.replace(/\r$/, "") === tag);
  if (end !== -1) return isBlank(lines.slice(end + 1)) ? lines.slice(0, end).join("\n") : null;
  while (lines.length > 0 && isBlank(lines.slice(-1))) lines.pop();
  if (lines.at(-1)?.trim() === tag) lines.pop();
  return lines.join("\n");
}

function isBlank(lines: readonly string[]): boolean {
  return lines.every((line) => line.trim() === "");
}
