import type { Readable } from "node:stream";
import { neutralise } from "../../lib/terminal/terminal.js";
import type { ToolSandbox } from "../../tools/index.js";
import type { ListingLine } from "./screen/block.js";

export type WorkspaceDiff =
  | { kind: "changes"; lines: ListingLine[]; isCut: boolean }
  | { kind: "none" }
  | { kind: "unavailable"; reason: string };

export const LONGEST_DIFF_BYTES = 512 * 1024;
const SHOWN_NEW_FILES = 50;
const TIMEOUT_MS = 30_000;

/**
 * Keep the repository's configuration from starting programs, and the output from being paged or coloured.
 */
const gitOptions = [
  "--no-pager",
  "--no-optional-locks",
  "-c",
  "safe.directory=*",
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.quotePath=false",
  "-c",
  "color.ui=never",
];
const diffOptions = ["--no-ext-diff", "--no-textconv", "--no-color"];

/** Runs git, and returns the beginning of what it prints, which is untrusted. */
export type Git = (args: readonly string[]) => Promise<GitOutput>;

/** Runs `git` inside the sandbox, because an agent may have written to the repository. */
export function gitIn(sandbox: ToolSandbox, place: { cwd: string; signal: AbortSignal }): Git {
  return (args) => runGit(sandbox, args, place);
}

export async function workspaceDiff(
  sandbox: ToolSandbox,
  { cwd, signal }: { cwd: string; signal: AbortSignal },
): Promise<WorkspaceDiff> {
  const git = gitIn(sandbox, { cwd, signal });
  const inside = await git(["rev-parse", "--is-inside-work-tree"]);
  if (inside.exitCode === 127) return { kind: "unavailable", reason: "there is no git in this image" };
  if (inside.exitCode !== 0)
    return {
      kind: "unavailable",
      reason: "the workspace is not in a git repository, so there is nothing to compare with",
    };
  const head = await git(["rev-parse", "--verify", "--quiet", "HEAD"]);
  const base = head.exitCode === 0 ? ["HEAD"] : ["--cached"];
  const changed = await git(["diff", ...diffOptions, ...base, "--", "."]);
  if (changed.exitCode !== 0 && !changed.isCut)
    return { kind: "unavailable", reason: changed.errors.trim() || "git diff failed" };
  const others = await git(["ls-files", "--others", "--exclude-standard", "-z", "--", "."]);
  const files = others.text.split("\0").filter((name) => name !== "");
  const additions: GitOutput[] = [];
  for (const file of files.slice(0, SHOWN_NEW_FILES))
    additions.push(await git(["diff", ...diffOptions, "--no-index", "--", "/dev/null", file]));
  const lines = [changed, ...additions].flatMap(({ text }) => diffLines(text));
  const unseen = files.length - SHOWN_NEW_FILES;
  if (unseen > 0) lines.push({ text: `and ${unseen} more new files`, tone: "quiet" });
  const isCut = [changed, others, ...additions].some((output) => output.isCut);
  return lines.length === 0 ? { kind: "none" } : { kind: "changes", lines, isCut };
}

interface GitOutput {
  exitCode: number;
  text: string;
  errors: string;
  isCut: boolean;
}

async function runGit(
  sandbox: ToolSandbox,
  args: readonly string[],
  { cwd, signal }: { cwd: string; signal: AbortSignal },
): Promise<GitOutput> {
  const git = await sandbox.spawn(["git", ...gitOptions, ...args], {
    cwd,
    signal,
    stdin: "closed",
    timeoutMs: TIMEOUT_MS,
  });
  const read = (stream: Readable | null) =>
    stream === null ? { text: "", isCut: false } : readStart(stream);
  const [output, errors, { exitCode }] = await Promise.all([
    read(git.stdout),
    read(git.stderr),
    git.exit.catch((error: unknown) => {
      signal.throwIfAborted();
      throw error;
    }),
  ]);
  return { exitCode, text: output.text, errors: errors.text, isCut: output.isCut };
}

/** Returns the beginning of a stream. Reads and discards the rest, so that the program can end. */
async function readStart(stream: Readable): Promise<{ text: string; isCut: boolean }> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  let isCut = false;
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    const rest = chunk.subarray(0, LONGEST_DIFF_BYTES - bytes);
    isCut ||= rest.length < chunk.length;
    bytes += rest.length;
    if (rest.length > 0) chunks.push(rest);
  }
  return { text: Buffer.concat(chunks).toString("utf8"), isCut };
}

export function diffLines(text: string): ListingLine[] {
  return neutralise(text)
    .split("\n")
    .filter((line, index, all) => line !== "" || index < all.length - 1)
    .map((line) => ({ text: line, tone: toneOf(line) }));
}

function toneOf(line: string): ListingLine["tone"] {
  if (/^(?:diff |index |new file|deleted file|--- |\+\+\+ |similarity |rename )/.test(line)) return "quiet";
  if (line.startsWith("@@")) return "hunk";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "plain";
}
