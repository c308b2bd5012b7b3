import type { SandboxDenial } from "../../policy/sandbox-denial.js";
import type { FileChange, SandboxPlace } from "../review/action.js";
import type { ActionReview, RefusalReason } from "../review/approval.js";
import { type Attempt, doReviewed } from "../review/reviewed-action.js";
import type { ToolActivity, ToolCallOptions } from "../tool.js";
import type { PatchChange } from "./apply-edits.js";
import { type PatchFiles, withoutLinks } from "./patch-files.js";
import { changesOf, type Patcher, type PatchOutcome, pathsOf } from "./patcher.js";
import { realPaths } from "./real-paths.js";

/** Who decides about patches, and what is needed where they are let leave the sandbox. */
export interface PatchReview {
  review: ActionReview;
  /** The files as the sandbox with full access sees them. */
  escalatedFiles(): Promise<PatchFiles>;
}

export interface PatchToApply {
  /** The tool that was asked to apply it. */
  tool: string;
  text: string;
  /** Absolute path inside the sandbox that relative paths start from. */
  cwd: string;
}

export type ReviewedPatch =
  | { kind: "refused"; reason: RefusalReason }
  | { kind: "done"; outcome: PatchOutcome; isRetryDeclined: boolean };

/**
 * Applies a patch once it is approved, and the part that the sandbox stood in the way of a second time with full access where that is
 * approved. Whatever it takes, it is told as one patch.
 */
export async function applyReviewedPatch(
  { patcher, review, escalatedFiles }: PatchReview & { patcher: Patcher },
  { tool, text, cwd }: PatchToApply,
  call: ToolCallOptions,
): Promise<ReviewedPatch> {
  const told = new ToldPatch(text, call);
  const attempt = async (
    place: SandboxPlace,
    earlier: PatchOutcome | null,
  ): Promise<Attempt<PatchOutcome>> => {
    const doneCount = earlier === null ? 0 : changesMade(earlier).length;
    const outside = place === "escalated" ? withoutLinks(await escalatedFiles()) : null;
    const elsewhere = outside === null ? null : await elsewhereThanShown(outside, pathsOf(text, cwd));
    if (elsewhere !== null) {
      const refused: PatchOutcome = { kind: "refused", reason: elsewhere };
      return { outcome: earlier === null ? refused : joined(earlier, refused), findDenial: null };
    }
    const outcome = await patcher.applyPatch(text, {
      cwd,
      signal: call.signal,
      resume: outside === null ? undefined : { files: outside, doneCount },
      onStart: (changes) => told.start(changes),
      onEnd: (changes, success) => told.end(changes, success),
    });
    const whole = earlier === null ? outcome : joined(earlier, outcome);
    const denial = denialOf(outcome);
    return { outcome: whole, findDenial: denial === null ? null : () => denial };
  };
  const changes = changesOf(text, cwd);
  const action = { kind: "patch" as const, tool, patch: text, cwd, changes: changes.map(activityOf) };
  try {
    // What is no patch, or changes nothing, is refused as such.
    if (changes.length === 0)
      return { kind: "done", outcome: (await attempt("sandbox", null)).outcome, isRetryDeclined: false };
    return await doReviewed(review, { action, attempt }, call);
  } finally {
    told.finish();
  }
}

/**
 * Why a patch may not be applied outside the sandbox: a link on the way leads elsewhere than the paths that a person has approved, into
 * the hooks of a repository, say. Null where none does. This is said before anything is changed; one that is put there later is
 * refused as it is met.
 */
async function elsewhereThanShown(files: PatchFiles, paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    const real = (await realPaths(files, [path])).at(-1);
    if (real !== undefined && real !== path)
      return `${path} leads through a symbolic link to ${real}: outside the sandbox a patch follows none, so name that file itself`;
  }
  return null;
}

/** Tells of a patch's attempts as of one: its start once, and its end when no attempt is to come. */
class ToldPatch {
  readonly #patch: string;
  readonly #tell: (activity: ToolActivity) => void;
  #isStarted = false;
  #end: { changes: FileChange[]; success: boolean } | null = null;

  constructor(patch: string, { onActivity }: ToolCallOptions) {
    this.#patch = patch;
    this.#tell = onActivity ?? (() => undefined);
  }

  start(changes: readonly PatchChange[]): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#tell({ kind: "patch-started", changes: changes.map(activityOf), patch: this.#patch });
  }

  end(changes: readonly PatchChange[], success: boolean): void {
    const earlier = this.#end?.changes ?? [];
    this.#end = { changes: [...earlier, ...changes.map(activityOf)], success };
  }

  finish(): void {
    if (this.#end !== null) this.#tell({ kind: "patch-ended", ...this.#end });
  }
}

function activityOf({ kind, path, movedFrom }: PatchChange): FileChange {
  return { kind, path: movedFrom ?? path };
}

function changesMade(outcome: PatchOutcome): PatchChange[] {
  return outcome.kind === "applied" || outcome.kind === "failed" ? outcome.changes : [];
}

/** Both attempts as one. A second one that does not even begin leaves what the first has done. */
function joined(first: PatchOutcome, second: PatchOutcome): PatchOutcome {
  const changes = [...changesMade(first), ...changesMade(second)];
  const durationMs = durationOf(first) + durationOf(second);
  switch (second.kind) {
    case "applied":
      return { kind: "applied", changes, durationMs };
    case "failed":
      return { ...second, changes, durationMs };
    case "refused":
    case "empty":
      return first.kind === "failed" && second.kind === "refused"
        ? { ...second, kind: "failed", changes, durationMs }
        : second;
    default:
      return second satisfies never;
  }
}

function durationOf(outcome: PatchOutcome): number {
  return outcome.kind === "applied" || outcome.kind === "failed" ? outcome.durationMs : 0;
}

/** What the kernel answers where the sandbox forbids something. */
const refusals: readonly string[] = ["EPERM", "EACCES", "EROFS"];

function denialOf(outcome: PatchOutcome): SandboxDenial | null {
  if (outcome.kind !== "refused" && outcome.kind !== "failed") return null;
  const { errno, reason } = outcome;
  if (errno === undefined || !refusals.includes(errno)) return null;
  return { errno, evidence: reason, toldBy: "kernel" };
}
