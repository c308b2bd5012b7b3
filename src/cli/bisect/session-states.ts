import { z } from "zod";
import type { ChangingStep, ReadRecord, SessionFileEntry, SessionLine } from "../../agent/index.js";
import { agentsOf, changingSteps, readSessionLines } from "../../agent/index.js";
import { BrigError, isBrigError } from "../../errors.js";
import type { PointHead } from "../../sandbox/index.js";
import { openSnapshot } from "../../sandbox/index.js";

/** A state of a session's copy-on-write workspace. */
export interface SessionState {
  snapshot: string;
  /** 0 is the state that the workspace began with. */
  point: number;
  origin: StateOrigin;
}

/** The event that turned the previous state into this one. */
export type StateOrigin =
  | { kind: "start" }
  /** The session was resumed with a new workspace, which began in the state in which the previous one had ended. */
  | { kind: "resumed" }
  /**
   * A call of the session or of one of its agents, or an undo of the user. `agent` is null for the session itself, and
   * `turn` is null for an undo.
   */
  | { kind: "step"; change: ChangingStep; agent: StepOfAgent["agent"] | null; turn: CallTurn | null }
  /** No session has a record of the event, as when a program goes on in the background. */
  | { kind: "unknown" };

/** The states of a session, from the one that its first workspace began with. */
export interface SessionStates {
  /** The path of the workspace on the host. */
  workspace: string;
  /** The image of the session's last sandbox; null if the session file does not name it. */
  image: string | null;
  /** There are at least two. */
  states: readonly SessionState[];
}

/** The position of a call, from 1, among the calls that changed the workspace, and their count. */
interface CallTurn {
  number: number;
  count: number;
}

/**
 * Finds all states of a session's workspace that were kept. Errors: `session.invalid` for a session without any,
 * `snapshot.unknown` for states that were removed, `snapshot.invalid`.
 */
export async function readSessionStates(
  { path, id }: Pick<SessionFileEntry, "path" | "id">,
  { brigHome, signal }: { brigHome: string; signal: AbortSignal },
): Promise<SessionStates> {
  const trees = new RecordedTrees();
  const steps = new Map<string, ChangingStep>();
  for await (const step of changingSteps(followed(readSessionLines(path, { signal }), trees))) {
    steps.set(stateKey(step.point.snapshot, step.point.number), step);
    trees.sawPoint(step.point.snapshot, step.point.number);
  }
  const stored: StoredTree[] = [];
  for (const tree of trees.all) {
    const points = await storedPoints(brigHome, tree);
    if (points !== null) stored.push({ ...tree, ...points });
  }
  const [first, ...others] = stored;
  if (first === undefined || stored.every(({ points }) => points.length === 0))
    throw noStates(trees.all.length > 0);
  if (others.some(({ workspace }) => workspace !== first.workspace)) throw otherWorkspace();
  const isComplete = stored.every((tree) =>
    tree.points.every(({ point }) => steps.has(stateKey(tree.snapshot, point))),
  );
  const ofAgents = isComplete ? new Map<string, StepOfAgent>() : await agentSteps(id, { brigHome, signal });
  const originOf = (key: string): StateOrigin => {
    const own = steps.get(key);
    if (own !== undefined) return { kind: "step", change: own, agent: null, turn: null };
    const found = ofAgents.get(key);
    return found === undefined ? { kind: "unknown" } : { kind: "step", ...found, turn: null };
  };
  const states = stored.flatMap(({ snapshot, points }, at): SessionState[] => [
    { snapshot, point: 0, origin: { kind: at === 0 ? "start" : "resumed" } },
    ...points.map(({ point }) => ({ snapshot, point, origin: originOf(stateKey(snapshot, point)) })),
  ]);
  return { workspace: first.workspace, image: trees.image, states: withTurns(states) };
}

function withTurns(states: readonly SessionState[]): SessionState[] {
  const isOfCall = ({ origin }: SessionState) => origin.kind === "step" && origin.change.call !== null;
  const count = states.filter(isOfCall).length;
  let number = 0;
  return states.map((state) => {
    if (state.origin.kind !== "step" || !isOfCall(state)) return state;
    number += 1;
    return { ...state, origin: { ...state.origin, turn: { number, count } } };
  });
}

/** A workspace that the session has had. */
interface RecordedTree {
  snapshot: string;
  /** The last point that belongs to the session; null if all do. */
  lastPoint: number | null;
  /** Whether a record says that a point was kept. */
  hasPoints: boolean;
}

interface StoredTree extends RecordedTree {
  workspace: string;
  points: readonly PointHead[];
}

const sandboxPayload = z.object({
  snapshot: z.string().max(200).nullish().catch(null),
  image: z.string().max(1000).nullish().catch(null),
  escalated: z.unknown().optional(),
});

/** Follows the records of a session, to find the workspaces that it has had. */
class RecordedTrees {
  readonly #trees = new Map<string, { last: number; isCopied: boolean }>();
  image: string | null = null;

  get all(): RecordedTree[] {
    return [...this.#trees].map(([snapshot, { last, isCopied }]) => ({
      snapshot,
      // The session that this one is a copy of may have gone on.
      lastPoint: isCopied ? last : null,
      hasPoints: last > 0,
    }));
  }

  add({ name, payload }: ReadRecord & { type: "brig" }): void {
    if (name === "sandbox") this.#addSandbox(payload);
    else if (name === "fork") this.#addFork(payload);
  }

  sawPoint(snapshot: string, point: number): void {
    const tree = this.#trees.get(snapshot);
    if (tree !== undefined) tree.last = Math.max(tree.last, point);
  }

  #addSandbox(payload: unknown): void {
    const { data } = sandboxPayload.safeParse(payload);
    if (data === undefined || data.escalated === true) return;
    this.image = data.image ?? this.image;
    if (data.snapshot && !this.#trees.has(data.snapshot))
      this.#trees.set(data.snapshot, { last: 0, isCopied: false });
  }

  #addFork({ is_foreign: isForeign }: Readonly<Record<string, unknown>>): void {
    // A file of unknown origin may name anything.
    if (isForeign === true) this.#trees.clear();
    for (const tree of this.#trees.values()) tree.isCopied = true;
  }
}

async function* followed(
  lines: AsyncIterable<SessionLine>,
  trees: RecordedTrees,
): AsyncIterable<SessionLine> {
  for await (const line of lines) {
    if (line.kind === "record" && line.record.type === "brig") trees.add(line.record);
    yield line;
  }
}

/** Null if nothing was kept, since nothing had changed. */
async function storedPoints(
  brigHome: string,
  { snapshot, lastPoint, hasPoints }: RecordedTree,
): Promise<Pick<StoredTree, "workspace" | "points"> | null> {
  try {
    const { head, points } = await openSnapshot(brigHome, snapshot);
    const ofSession = points.filter(({ point }) => lastPoint === null || point <= lastPoint);
    // Applying changes to the host leaves the workspace as it was, so such a point is no state of its own.
    return { workspace: head.workspace, points: ofSession.filter(({ kind }) => kind !== "applied") };
  } catch (error) {
    if (!isBrigError(error, "snapshot.unknown")) throw error;
    if (!hasPoints) return null;
    throw new BrigError("the states of the session's workspace have been removed", {
      code: "snapshot.unknown",
      cause: error,
    });
  }
}

function noStates(isCopyOnWrite: boolean): BrigError {
  if (isCopyOnWrite)
    return new BrigError("no call of the session has changed its workspace", { code: "session.invalid" });
  return new BrigError("no states of the session's workspace were kept", {
    code: "session.invalid",
    hint: "they are kept for sessions with --workspace overlay",
  });
}

function otherWorkspace(): BrigError {
  return new BrigError("the session has worked on more than one directory", {
    code: "session.invalid",
    hint: "only states of the same directory can be compared",
  });
}

/** A change that an agent of a session has made in the session's workspace. */
interface StepOfAgent {
  change: ChangingStep;
  agent: { id: string; nickname: string | null };
}

/** The changes that all agents below a session have recorded, by snapshot and point. */
async function agentSteps(
  sessionId: string,
  { brigHome, signal }: { brigHome: string; signal: AbortSignal },
): Promise<Map<string, StepOfAgent>> {
  const steps = new Map<string, StepOfAgent>();
  for (const { id, nickname, path } of await agentsOf(sessionId, brigHome))
    for await (const change of changingSteps(readSessionLines(path, { signal })))
      steps.set(stateKey(change.point.snapshot, change.point.number), { change, agent: { id, nickname } });
  return steps;
}

function stateKey(snapshot: string, point: number): string {
  return `${snapshot}:${point}`;
}
