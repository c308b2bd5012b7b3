import { BEGIN, parsePatch } from "../patch/patch-format.js";
import type { CommandSafety } from "./command-safety.js";

/** A command that a tool was called with, read once for everything that depends on what it does. */
export class ReadCommand {
  /** As the model wrote it. People are shown this, and judge by it. */
  readonly argv: readonly string[];
  /** The patch that the command applies, or that stands where a command should be. Null for any other command. */
  readonly patch: PatchCommand | null;
  #safety: Promise<CommandSafety> | null = null;

  constructor(argv: readonly string[]) {
    this.argv = argv;
    this.patch = recognisePatchCommand(argv);
  }

  /**
   * Which commands it consists of, and what they could do. Loads the parser of scripts when it is first needed,
   * because loading is most of what a session's start costs.
   */
  async safety(): Promise<CommandSafety> {
    this.#safety ??= import("./command-safety.js").then((loaded) => new loaded.CommandSafety(this.argv));
    return await this.#safety;
  }
}

export type PatchCommand =
  /** The command applies a patch. Relative paths start at `directory`, relative to the working directory. */
  | { kind: "patch"; patch: string; directory: string | null }
  /** The patch itself instead of a command. `barePatchReason` is the answer for the model. */
  | { kind: "bare-patch" };

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
function recognisePatchCommand(argv: readonly string[]): PatchCommand | null {
  const [program = "", ...args] = argv;
  if (args.length === 0) return isPatch(program) ? { kind: "bare-patch" } : null;
  if (args.length === 1 && patchPrograms.has(program))
    return { kind: "patch", patch: args[0] ?? "", directory: null };
  const script = scriptOf(program, args);
  return script === null ? null : recognisePatchScript(script);
}

export function recognisePatchScript(script: string): PatchCommand | null {
  const [head, directory = null, dash, tag] = matchHead(script);
  if (head === undefined || tag === undefined) return isPatch(script) ? { kind: "bare-patch" } : null;
  const body = heredocBody(script.slice(head.length), { tag, dropsTabs: dash === "-" });
  return body === null ? null : { kind: "patch", patch: body, directory };
}

/** Most commands need not be parsed for this: a patch has the line with which it begins. */
function isPatch(text: string): boolean {
  return text.includes(BEGIN) && parsePatch(text).kind === "patch";
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
