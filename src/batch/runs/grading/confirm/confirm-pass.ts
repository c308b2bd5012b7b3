import { join } from "node:path";
import { isBrigError } from "../../../../errors.js";
import { makeDirectory } from "../../../../lib/files/make-directory.js";
import type { ContainerChange, StoppedSandboxFiles } from "../../../../sandbox/index.js";
import { artifactSources } from "../../artifacts/artifact-paths.js";
import { describePrograms, type RunningProgram } from "../../place/running-programs.js";
import type { TaskPlace } from "../../place/task-sandbox.js";
import { passes } from "../../results/attempt-outcome.js";
import type { Confirmation } from "../../results/attempt-result.js";
import { mainReward } from "../parse-rewards.js";
import { type FreshGrading, gradeFresh } from "./grade-fresh.js";
import type { KeptWork } from "./kept-work.js";
import { type ChangeGroup, changesOutside, groupsOf } from "./outside-changes.js";
import { placeChanges } from "./place-changes.js";
import { type SmallestSet, smallestSet } from "./smallest-set.js";

/** The first shows whether a pass rests on the work; the others look for what else it rests on. */
const MAX_GRADINGS = 16;
const LONGEST_MS = 10 * 60_000;
const MAX_PATHS = 100;

/** Folder for the outputs of the tests, on the host, in the folder of the step. */
const CONFIRM_FOLDER = "confirm";

export interface PassToConfirm extends Omit<FreshGrading, "folder"> {
  work: KeptWork;
  /** The agent's container, after its tests. */
  stopped: StoppedSandboxFiles;
  /** Everything that the agent had changed before the tests ran. */
  changes: readonly ContainerChange[];
  /** Programs that the agent left running, and that still ran during the tests. */
  keptPrograms: readonly RunningProgram[];
  /** Folder of the step, on the host. */
  folder: string;
  /** Called before each grading. */
  onGrading?: ((grading: { number: number; atMost: number }) => void) | undefined;
}

/** Directories that belong to the work itself: the working directory, and the artifacts that lie elsewhere. */
export function workRoots(step: FreshGrading["step"], cwd: string): string[] {
  const all = [...new Set([cwd, ...artifactSources(step.artifacts, cwd)])];
  return all.filter((path) => !all.some((other) => other !== path && path.startsWith(`${other}/`)));
}

export function notConfirmed(message: string): Confirmation {
  return { outcome: "unknown", paths: [], isSmallest: false, gradings: 0, message };
}

/**
 * Grades a pass again with nothing but the work, in a fresh container. If that does not pass, the pass rests on what the agent
 * has changed elsewhere, and halving finds a smallest set of these changes with which it does. The grade stays as it is, and what goes wrong here costs
 * nobody a grade. Error: the reason of the place's signal.
 */
export async function confirmPass(place: TaskPlace, pass: PassToConfirm): Promise<Confirmation> {
  const gradings = new Gradings(place, pass);
  try {
    if (await gradings.passes([]))
      return { ...notConfirmed(""), outcome: "clean", gradings: 1, message: null };
    const outside = changesOutside(pass.changes, pass.work.roots);
    if (outside.length === 0 || !(await gradings.passes(outside)))
      return { ...notFound(pass), gradings: gradings.count };
    const found = await smallestChanges(outside, gradings);
    const paths = found.items.map(({ path }) => path).toSorted();
    return {
      outcome: "outside",
      paths: paths.slice(0, MAX_PATHS),
      isSmallest: found.isSmallest && paths.length <= MAX_PATHS,
      gradings: gradings.count,
      message: null,
    };
  } catch (error) {
    place.signal?.throwIfAborted();
    if (!isBrigError(error)) throw error;
    return { ...notConfirmed(`it could not be graded again: ${error.message}`), gradings: gradings.count };
  }
}

/** Result if no set of changes explains the pass. It may then rest on running programs, on volumes, or on chance. */
function notFound({ keptPrograms }: PassToConfirm): Confirmation {
  if (keptPrograms.length === 0)
    return notConfirmed(
      "a fresh container does not pass, also with all that the agent has changed elsewhere",
    );
  const message = `it rests on what the agent left running: ${describePrograms(keptPrograms)}`;
  return { ...notConfirmed(message), outcome: "outside" };
}

/** Groups first, where there are many changes, and then what is in those that matter. */
async function smallestChanges(
  outside: readonly ContainerChange[],
  gradings: Gradings,
): Promise<SmallestSet<ChangeGroup>> {
  const test = async (part: readonly ChangeGroup[]) =>
    gradings.isOver ? "out-of-budget" : await gradings.passes(part.flatMap(({ changes }) => changes));
  const groups = await smallestSet(groupsOf(outside), test);
  const inside = groups.items.flatMap(({ changes }) => changes);
  if (inside.length === groups.items.length || gradings.isOver) {
    const isWhole = groups.items.every(({ changes }) => changes.length === 1);
    return { ...groups, isSmallest: groups.isSmallest && isWhole };
  }
  const single = await smallestSet(groupsOf(inside), test);
  const isWhole = single.items.every(({ changes }) => changes.length === 1);
  return { items: single.items, isSmallest: groups.isSmallest && single.isSmallest && isWhole };
}

class Gradings {
  count = 0;
  readonly #place: TaskPlace;
  readonly #pass: PassToConfirm;
  readonly #until = performance.now() + LONGEST_MS;

  constructor(place: TaskPlace, pass: PassToConfirm) {
    this.#place = place;
    this.#pass = pass;
  }

  get isOver(): boolean {
    return this.count >= MAX_GRADINGS || performance.now() > this.#until;
  }

  /** Grades the work together with these changes. */
  async passes(changes: readonly ContainerChange[]): Promise<boolean> {
    const { work, stopped: from, onGrading } = this.#pass;
    const { signal } = this.#place;
    onGrading?.({ number: ++this.count, atMost: MAX_GRADINGS });
    const folder = join(this.#pass.folder, CONFIRM_FOLDER, String(this.count));
    await makeDirectory(folder);
    const { rewards } = await gradeFresh(this.#place, { ...this.#pass, folder }, async (asRoot) => {
      await placeChanges(asRoot, changes, { from, signal });
      await work.placeIn(asRoot);
    });
    return passes({ status: "scored", reward: mainReward(rewards ?? {}) });
  }
}
