import type { Conversation } from "../../agent/index.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import type { PathReason, Sandbox, WorkspaceChange } from "../../sandbox/index.js";
import { type Block, type ListingLine, notice, warning } from "./screen/block.js";
import { plural } from "./screen/styled-line.js";
import type { SlashCall, SlashParts } from "./slash-call.js";
import { diffLines, LONGEST_DIFF_BYTES, workspaceDiff } from "./workspace-diff.js";

/** At most this many paths are listed. */
const NAMED_PATHS = 100;

/** Compares a copy-on-write workspace with the host's files, any other one with the last commit. */
export async function showDiff(call: SlashCall, parts: SlashParts): Promise<void> {
  const sandbox = await copyOnWriteSandbox(parts.conversation);
  if (sandbox === null) await showGitDiff(call, parts);
  else await showDiffWithHost(sandbox, call, parts);
}

async function showGitDiff({ signal }: SlashCall, { conversation, show }: SlashParts): Promise<void> {
  const sandbox = await conversation.sandbox;
  const diff = await workspaceDiff(sandbox, { cwd: conversation.setting.cwd, signal });
  if (diff.kind === "none") return show(notice("nothing has changed since the last commit"));
  if (diff.kind === "unavailable") return show(warning(neutralise(diff.reason)));
  show({ kind: "listing", title: "changes since the last commit", lines: diff.lines });
  if (diff.isCut) show(warning("the diff is too long; its end is missing"));
}

async function showDiffWithHost(
  sandbox: CopyOnWrite,
  { signal }: SlashCall,
  { show }: SlashParts,
): Promise<void> {
  const lines: ListingLine[] = [];
  const onChange = (change: WorkspaceChange) => void lines.push(...linesOf(change));
  const { count, tooLarge, notEntered } = await sandbox.diff({
    maxPatchBytes: LONGEST_DIFF_BYTES,
    onChange,
    signal,
  });
  if (count === 0) return show(notice(NOTHING_DIFFERS));
  show({ kind: "listing", title: "changes that your files do not have", lines });
  if (tooLarge > 0) show(warning(`of ${plural(tooLarge, "file")} the changes are too long to be shown`));
  if (notEntered > 0) show(warning(`directories that could not be looked into: ${notEntered}`));
}

function linesOf({ path, change, before, after, patch, isBinary }: WorkspaceChange): ListingLine[] {
  if (patch !== null && !isBinary) return diffLines(patch);
  const type = (after ?? before)?.type ?? "file";
  const what = isBinary && type === "file" ? "binary file" : type;
  return [{ text: `${change} ${what} ${neutraliseLine(path)}`, tone: "quiet" }];
}

/** Makes the changes of a copy-on-write workspace on the host: all of them, or those at the given paths. */
export async function applyToHost({ argument, signal }: SlashCall, parts: SlashParts): Promise<void> {
  const { conversation, show } = parts;
  const sandbox = await copyOnWriteSandbox(conversation);
  if (sandbox === null) return show(needsCopyOnWrite("apply"));
  if (parts.hasBusyAgents()) return show(agentsAtWork("apply"));
  const paths = splitPaths(argument);
  const {
    applied,
    conflicts,
    skipped,
    findings = [],
  } = await parts.showWork("applying the changes", signal, async (onCopied) =>
    sandbox.apply({ paths: paths.length === 0 ? undefined : paths, signal, onCopied }),
  );
  if (skipped.length > 0) show(listing("never applied", skipped.map(reasonText)));
  if (conflicts.length > 0) {
    show(listing("in conflict with your files", conflicts.map(reasonText)));
    return show(warning("nothing was applied", "/apply PATHS brings only some of the changes"));
  }
  if (applied.length > 0) show(listing(`applied to your files: ${plural(applied.length, "path")}`, applied));
  else if (skipped.length === 0) show(notice(NOTHING_DIFFERS));
  const obeyed = findings.map(({ path, obeyedBy }) => reasonText({ path, reason: obeyedBy }));
  if (obeyed.length > 0) show(listing("review these: programs run or obey them by themselves", obeyed));
}

/** Undoes the last call that changed a copy-on-write workspace and is not undone yet. */
export async function undoLastCall({ signal }: SlashCall, parts: SlashParts): Promise<void> {
  const { conversation, show } = parts;
  if ((await copyOnWriteSandbox(conversation)) === null) return show(needsCopyOnWrite("undo"));
  if (parts.hasBusyAgents()) return show(agentsAtWork("undo"));
  const undone = await parts.showWork("taking back the changes", signal, async (onCopied) =>
    conversation.undo({ signal, onCopied }),
  );
  if (undone === null) return show(notice("there is nothing to undo"));
  const { changes, count } = undone.point;
  const paths = changes.map(({ path, change }) => `${putBack[change]} ${path}`);
  show(listing("the last call that changed files is undone", paths, { count }));
}

/** The word for how an undo has changed a path. */
const putBack = { added: "made again", modified: "put back", deleted: "removed" } as const;

const NOTHING_DIFFERS = "nothing differs from your files";

/** Splits paths at blanks. A path that contains blanks has to be quoted. */
function splitPaths(argument: string): string[] {
  const found = argument.matchAll(/"(?<double>[^"]+)"|'(?<single>[^']+)'|(?<bare>\S+)/g);
  return [...found].map(({ groups, 0: all }) => groups?.double ?? groups?.single ?? groups?.bare ?? all);
}

type CopyOnWrite = Pick<Sandbox, "diff" | "apply">;

/** Null if the session works on a workspace of another kind. */
async function copyOnWriteSandbox(conversation: Conversation): Promise<CopyOnWrite | null> {
  const sandbox = await conversation.sandbox;
  // One of this process, or one of brig up.
  const isCopyOnWrite = typeof sandbox.snapshotId === "string" && "diff" in sandbox && "apply" in sandbox;
  return isCopyOnWrite ? (sandbox as typeof sandbox & CopyOnWrite) : null;
}

function needsCopyOnWrite(command: "apply" | "undo"): Block {
  return warning(
    `/${command} needs a copy-on-write workspace, which this session does not have`,
    "start it with --workspace overlay: then your files stay as they are until /apply",
  );
}

/**
 * Refuses a command while agents are working, because what they are writing at this moment would be applied
 * half done.
 */
function agentsAtWork(command: "apply" | "undo"): Block {
  return warning(
    `agents are still changing files, so /${command} has done nothing`,
    "wait until they have finished, or stop them with ctrl-C",
  );
}

function reasonText({ path, reason }: PathReason): string {
  return `${path}: ${reason}`;
}

/** `count` is the number of all of them, if the list does not have all. */
function listing(
  title: string,
  texts: readonly string[],
  { count = texts.length }: { count?: number } = {},
): Block {
  const shown = texts
    .slice(0, NAMED_PATHS)
    .map((text) => ({ text: neutraliseLine(text), tone: "plain" }) as const);
  const missing = count - shown.length;
  const more = missing > 0 ? [{ text: `and ${missing} more`, tone: "quiet" } as const] : [];
  return { kind: "listing", title, lines: [...shown, ...more] };
}
