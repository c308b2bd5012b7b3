import { z } from "zod";
import type { SessionRestorePoint } from "../restore-point.js";
import type { ReadRecord } from "./session-lines.js";

/** The copy-on-write workspace that a session had last. */
export interface RecordedWorkspace {
  /**
   * Places where its state may be stored. Use the first of these that exists. If one with `isCertain` is missing, the
   * state is lost; if none exists, nothing was changed.
   */
  readonly states: readonly RecordedState[];
}

/** A state of a copy-on-write workspace, by the names under which it is kept. */
export interface RecordedState {
  readonly snapshot: string;
  /** The number of the restore point; null for the last. */
  readonly point: number | null;
  /** Whether it must exist. A workspace in which nothing was changed leaves no snapshot. */
  readonly isCertain: boolean;
}

const name = z.string().min(1).max(200);
const number = z.int().nonnegative();

const pointPayload = z.object({
  snapshot: name,
  point: number,
  count: number,
  changes: z
    .array(z.object({ path: z.string(), change: z.enum(["added", "modified", "deleted"]) }))
    .max(1000),
});
const sandboxPayload = z.object({ snapshot: name.nullish().catch(null), escalated: z.unknown().optional() });
const receiptPayload = z.object({ changes: z.object({ snapshot: name }) });

/** Reads the payload of `brig.restore_point` and `brig.undo`. Returns null for one that is not valid. */
export function readPoint(payload: unknown): SessionRestorePoint | null {
  const { data } = pointPayload.safeParse(payload);
  if (data === undefined) return null;
  const { point, ...rest } = data;
  return { ...rest, number: point };
}

/** Follows the records of a session, to find where the last state of its workspace is kept. */
export class WorkspaceReading {
  /** The latest first. Null: the workspace is not copy-on-write. */
  #states: RecordedState[] | null = null;
  /** Number of states that are the session's own, and not those of the session that it was forked from. */
  #ownCount = 0;

  add({ name: kind, payload }: ReadRecord & { type: "brig" }): void {
    if (kind === "sandbox") this.#addSandbox(payload);
    else if (kind === "restore_point" || kind === "undo") this.#addPoint(payload);
    else if (kind === "receipt") this.#addReceipt(payload);
    else if (kind === "fork") this.#addFork(payload);
  }

  get result(): RecordedWorkspace | null {
    if (this.#states === null) return null;
    // The session's own last state may be newer than its last record, so it is taken without a number. A
    // later state of the original session may belong to steps that were not copied.
    const states = this.#states.map((state, at) => (at < this.#ownCount ? { ...state, point: null } : state));
    return { states };
  }

  #addSandbox(payload: unknown): void {
    const { data } = sandboxPayload.safeParse(payload);
    if (data === undefined || data.escalated === true) return;
    if (!data.snapshot) this.#forget();
    else if (this.#states?.[0]?.snapshot !== data.snapshot)
      this.#begin({ snapshot: data.snapshot, point: 0, isCertain: false });
  }

  #addPoint(payload: unknown): void {
    const point = readPoint(payload);
    if (point !== null) this.#keep(point.snapshot, point.number);
  }

  #addReceipt(payload: unknown): void {
    const { data } = receiptPayload.safeParse(payload);
    if (data !== undefined) this.#keep(data.changes.snapshot, null);
  }

  #addFork({ is_foreign: isForeign }: Readonly<Record<string, unknown>>): void {
    // A file of unknown origin could name the snapshot of another session.
    if (isForeign === true) this.#forget();
    this.#ownCount = 0;
  }

  /** Notes a point, if it belongs to the workspace of the last recorded sandbox. */
  #keep(snapshot: string, point: number | null): void {
    const [current, ...before] = this.#states ?? [];
    if (current?.snapshot === snapshot) this.#states = [{ snapshot, point, isCertain: true }, ...before];
  }

  #begin(state: RecordedState): void {
    this.#states = [state, ...(this.#states ?? [])];
    this.#ownCount++;
  }

  #forget(): void {
    this.#states = null;
    this.#ownCount = 0;
  }
}
