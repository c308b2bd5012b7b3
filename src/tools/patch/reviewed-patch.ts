import type { SandboxDenial } from "../../sandbox/index.js";
import type { FileChange, SandboxPlace } from "../review/action.js";
import type { ActionReview, RefusalReason } from "../review/approval.js";
import { type Attempt, runReviewed } from "../review/reviewed-action.js";
import type { ToolActivity, ToolCallOptions } from "../tool.js";
import type { MadeChange, PatchChange } from "./apply-edits.js";
import { type PatchFiles, refusingSymlinks } from "./patch-files.js";
import { type Patcher, type PatchOutcome, ReadPatch } from "./patcher.js";
import { realPaths } from "./path-locks.js";

export interface PatchReview {
  review: ActionReview;
  escalatedFiles(): Promise<PatchFiles>;
}

export interface PatchToApply {
  tool: string;
  text: string;
  cwd: string;
}

export type ReviewedPatch =
  | { kind: "refused"; reason: RefusalReason }
  | { kind: "done"; outcome: PatchOutcome; isRetryDeclined: boolean };

/**
 * Applies a patch once it is approved. If the sandbox makes it fail, the rest of it is applied with full
 * access once that is approved. Both attempts are reported as one patch.
 */
export async function applyReviewedPatch(
  { patcher, review, escalatedFiles }: PatchReview & { patcher: Patcher },
  { tool, text, cwd }: PatchToApply,
  call: ToolCallOptions,
): Promise<ReviewedPatch> {
  const patch = ReadPatch.read(text, cwd);
  const events = new PatchEvents(text, call);
  const attempt = async (
    place: SandboxPlace,
    earlier: PatchOutcome | null,
  ): Promise<Attempt<PatchOutcome>> => {
    const doneCount = earlier === null ? 0 : changesMade(earlier).length;
    const outside = place === "escalated" ? refusingSymlinks(await escalatedFiles()) : null;
    const reason = outside === null ? null : await symlinkRefusal(outside, patch.paths);
    if (reason !== null) {
      const refused: PatchOutcome = { kind: "refused", reason };
      return { outcome: earlier === null ? refused : joined(earlier, refused), findDenial: null };
    }
    const outcome = await patcher.apply(patch, {
      signal: call.signal,
      resume: outside === null ? undefined : { files: outside, doneCount },
      onStart: (changes) => events.start(changes),
      onEnd: (changes, { success }) => events.end(changes, success),
    });
    const whole = earlier === null ? outcome : joined(earlier, outcome);
    const denial = denialOf(outcome);
    return { outcome: whole, findDenial: denial === null ? null : () => denial };
  };
  const changes = patch.changes.map(activityOf);
  const action = { kind: "patch" as const, tool, patch: text, cwd, changes };
  try {
    // Nothing to review: the patch is invalid or empty, and the attempt reports that.
    if (changes.length === 0)
      return { kind: "done", outcome: (await attempt("sandbox", null)).outcome, isRetryDeclined: false };
    return await runReviewed(review, { action, attempt }, call);
  } finally {
    events.finish();
  }
}

/**
 * Refuses a patch outside the sandbox if a symbolic link leads to another file than the person approved, e.g.
 * a Git hook. This happens before anything is changed. `refusingSymlinks` refuses links that are created
 * later.
 */
async function symlinkRefusal(files: PatchFiles, paths: readonly string[]): Promise<string | null> {
  for (const path of paths) {
    const real = (await realPaths(files, [path])).at(-1);
    if (real !== undefined && real !== path)
      return `${path} leads through a symbolic link to ${real}: outside the sandbox a patch follows none, so name that file itself`;
  }
  return null;
}

/** Reports both attempts at a patch as one: its start once, and its end after the last attempt. */
class PatchEvents {
  readonly #patch: string;
  readonly #report: (activity: ToolActivity) => void;
  #isStarted = false;
  readonly #made: MadeChange[] = [];
  /** Whether the last attempt did all; null before its end. */
  #success: boolean | null = null;

  constructor(patch: string, { onActivity }: ToolCallOptions) {
    this.#patch = patch;
    this.#report = onActivity ?? (() => undefined);
  }

  start(changes: readonly PatchChange[]): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#report({ kind: "patch-started", changes: changes.map(activityOf), patch: this.#patch });
  }

  end(changes: readonly MadeChange[], success: boolean): void {
    this.#made.push(...changes);
    this.#success = success;
  }

  finish(): void {
    if (this.#success === null) return;
    const changes = this.#made.map(activityOf);
    const diffs = this.#made.map(({ path, movedFrom, before, after }) => ({
      path,
      movedFrom,
      before,
      after,
    }));
    this.#report({ kind: "patch-ended", changes, diffs, success: this.#success });
  }
}

function activityOf({ kind, path, movedFrom }: PatchChange): FileChange {
  return { kind, path: movedFrom ?? path };
}

function changesMade(outcome: PatchOutcome): MadeChange[] {
  return outcome.kind === "applied" || outcome.kind === "failed" ? outcome.changes : [];
}

/** Combines the outcomes of both attempts. If the second is refused, the changes of the first stay. */
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

/** The errors with which the kernel refuses what the sandbox forbids. */
const denials: readonly string[] = ["EPERM", "EACCES", "EROFS"];

function denialOf(outcome: PatchOutcome): SandboxDenial | null {
  if (outcome.kind !== "refused" && outcome.kind !== "failed") return null;
  const { errno, reason } = outcome;
  if (errno === undefined || !denials.includes(errno)) return null;
  return { errno, evidence: reason, toldBy: "kernel" };
}
