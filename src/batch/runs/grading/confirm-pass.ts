import { join, posix } from "node:path";
import { isBrigError } from "../../../errors.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { Gate } from "../../../lib/time/gate.js";
import type { ContainerChange, Sandbox, StoppedSandboxFiles } from "../../../sandbox/index.js";
import { containerOf, stopSandbox } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import { artifactSources } from "../artifacts/artifact-paths.js";
import { isBelow, topmost } from "../changes-below.js";
import { unlessRefused } from "../place/file-refusal.js";
import type { ReadableContainer } from "../place/image-files.js";
import type { ImageUser } from "../place/image-user.js";
import { makeDirectories } from "../place/make-directories.js";
import { prepareEnvironment, prepareStep } from "../place/prepare-environment.js";
import { describePrograms, type RunningProgram } from "../place/running-programs.js";
import {
  confirmationNetworks,
  openTaskSandbox,
  setupNetwork,
  type TaskPlace,
  testsNetwork,
} from "../place/task-sandbox.js";
import type { TimeAllowed } from "../processors.js";
import { passes } from "../results/attempt-outcome.js";
import type { Confirmation } from "../results/attempt-result.js";
import { asAgentsFault, type Judged, judgeTests } from "./judge-tests.js";
import type { KeptWork } from "./kept-work.js";
import { mainReward } from "./rewards.js";
import { openTestContainer, runTests } from "./run-tests.js";

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
  return topmost([cwd, ...artifactSources(step.artifacts, cwd)]);
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

/** Answer of a test to a set of items. Once its budget is used, it may not be asked any more. */
type Answer = boolean | "out-of-budget";

interface SmallestSet<Item> {
  items: Item[];
  /** False where the budget ended before everything that can be left out was. */
  isSmallest: boolean;
}

/**
 * A smallest part of some items with which a test still succeeds, given that it fails with none and succeeds with all of them: no
 * item of it can be left out. By halving (QuickXplain), so that few of many items take about two tests for each halving.
 */
export async function smallestSet<Item>(
  items: readonly Item[],
  test: (part: readonly Item[]) => Promise<Answer>,
): Promise<SmallestSet<Item>> {
  let isSmallest = true;
  const succeeds = async (part: readonly Item[]) => {
    const answer = await test(part);
    if (answer === "out-of-budget") isSmallest = false;
    return answer === true;
  };
  /** The items of `candidates` that are needed besides `base`. */
  const needed = async (
    base: readonly Item[],
    candidates: readonly Item[],
    { isBaseNew }: { isBaseNew: boolean },
  ): Promise<Item[]> => {
    if (isBaseNew && (await succeeds(base))) return [];
    if (candidates.length <= 1) return [...candidates];
    const middle = Math.ceil(candidates.length / 2);
    const [first, second] = [candidates.slice(0, middle), candidates.slice(middle)];
    const ofSecond = await needed([...base, ...first], second, { isBaseNew: true });
    const ofFirst = await needed([...base, ...ofSecond], first, { isBaseNew: ofSecond.length > 0 });
    return [...ofFirst, ...ofSecond];
  };
  const found = await needed([], items, { isBaseNew: false });
  return { items: found, isSmallest };
}

/** Engines answer a few requests at a time sooner than one after the other. */
const WIDTH = 8;

/** Makes these changes of a stopped container in another one, in which nothing of an agent runs. Errors: the engine's. */
async function placeChanges(
  sandbox: Sandbox,
  changes: readonly ContainerChange[],
  { from, signal }: { from: ReadableContainer; signal?: AbortSignal | undefined },
): Promise<void> {
  const gate = new Gate();
  const place = (change: ContainerChange) =>
    gate.pass(() => placeChange(sandbox, change, { from, signal }), { width: WIDTH, signal });
  const settled = await Promise.allSettled(changes.map(place));
  for (const one of settled) if (one.status === "rejected") throw one.reason;
  // The loader finds the libraries among them by its cache, as in the agent's container.
  if (changes.some(({ path }) => /\.so(?:\.|$)|^\/etc\/ld\.so/.test(path)))
    await sandbox.exec(["/sbin/ldconfig"], { cwd: "/", timeoutMs: 60_000, signal });
}

async function placeChange(
  sandbox: Sandbox,
  { path, kind }: ContainerChange,
  { from, signal }: { from: ReadableContainer; signal?: AbortSignal | undefined },
): Promise<void> {
  const { engine, containerId } = containerOf(sandbox);
  // A path that tests have removed since then is treated as if it had never existed.
  const archive =
    kind === "deleted" ? null : await from.engine.readArchive(from.containerId, path, signal && { signal });
  if (archive === null) return await remove(sandbox, path);
  const directory = posix.dirname(path);
  if (kind === "changed") await remove(sandbox, path);
  else await sandbox.files.mkdir(directory, { recursive: true, mode: 0o755 });
  await engine.putArchive(containerId, directory, archive);
}

async function remove({ files }: Sandbox, path: string): Promise<void> {
  await unlessRefused(files.remove(path, { recursive: true, force: true }));
}

/** Changes that are tried together. */
interface ChangeGroup {
  /** The path of the only change, or the directory that has all of them. */
  path: string;
  changes: readonly ContainerChange[];
}

/** With more groups there would be more halvings than gradings. */
const MAX_GROUPS = 128;

/** The kernel's, the engine's, brig's, and what is made anew for all tests. */
const notOfTheAgent =
  /^\/(?:proc|sys|dev|\.brig|tests|solution|logs|run)(?:\/|$)|^\/etc\/(?:hostname|hosts|resolv\.conf|mtab)$/;

/**
 * Changes of an agent outside of some directories: files, links, and whole directories where the topmost is new. A
 * directory in which only something has changed is not listed itself.
 */
export function changesOutside(
  changes: readonly ContainerChange[],
  roots: readonly string[],
): ContainerChange[] {
  const parents = new Set(changes.map(({ path }) => posix.dirname(path)));
  const sorted = changes.toSorted((one, other) => (one.path < other.path ? -1 : 1));
  const holdsRoot = (path: string) => roots.some((root) => isBelow(root, path));
  const whole = new Set(
    sorted.filter(({ path, kind }) => kind === "added" && !holdsRoot(path)).map(({ path }) => path),
  );
  return sorted.filter(({ path, kind }) => {
    if (notOfTheAgent.test(path) || roots.some((root) => path === root || isBelow(path, root))) return false;
    if (isInOneOf(path, whole) || holdsRoot(path)) return false;
    return kind !== "changed" || !parents.has(path);
  });
}

/** Returns each change by itself, or those of a directory together if there are too many of them. */
export function groupsOf(changes: readonly ContainerChange[]): ChangeGroup[] {
  if (changes.length <= MAX_GROUPS)
    return changes.map((change) => ({ path: change.path, changes: [change] }));
  for (let depth = DEEPEST; depth > 1; depth--) {
    const groups = groupedAt(changes, depth);
    if (groups.length <= MAX_GROUPS) return groups;
  }
  return groupedAt(changes, 1);
}

const DEEPEST = 8;

function groupedAt(changes: readonly ContainerChange[], depth: number): ChangeGroup[] {
  const groups = new Map<string, ContainerChange[]>();
  for (const change of changes) {
    const names = posix.dirname(change.path).split("/");
    const key = names.slice(0, depth + 1).join("/") || "/";
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups].map(([path, own]) => ({
    path: own.length === 1 ? (own[0]?.path ?? path) : path,
    changes: own,
  }));
}

function isInOneOf(path: string, directories: ReadonlySet<string>): boolean {
  for (let at = posix.dirname(path); at !== "/"; at = posix.dirname(at)) if (directories.has(at)) return true;
  return false;
}

interface FreshGrading {
  task: Task;
  step: TaskStep;
  imageId: string;
  /** Users that the agent worked as and that the tests run as. */
  agent: ImageUser;
  user: ImageUser;
  /** Environment of the tests. */
  env: Readonly<Record<string, string>>;
  allowed: TimeAllowed;
  /** Folder on the host; gets the output of the tests. */
  folder: string;
}

/**
 * Runs the tests of a shared verifier in a container in which no agent has worked, as it was prepared for one, with what
 * `place` puts there. Errors: those of opening the container, of the engine and of the host's files.
 */
async function gradeFresh(
  place: TaskPlace,
  { task, step, imageId, agent, user, env, allowed, folder }: FreshGrading,
  placeWork: (asRoot: Sandbox) => Promise<void>,
): Promise<Judged> {
  const { environment } = task;
  const { check } = step.verifier;
  const { signal } = place;
  const networks = confirmationNetworks(task, step);
  const opened = await openTaskSandbox(place, {
    environment,
    imageId,
    user: step.verifier.user,
    network: networks.opened,
    env: environment.env,
  });
  await using sandbox = opened.sandbox;
  const { cwd } = opened;
  const directories = ["/logs/agent", "/logs/artifacts", cwd];
  await makeDirectories(
    sandbox,
    directories.map((path) => ({ path, mode: 0o755, owner: agent })),
  );
  networks.enter(sandbox, environment.network);
  await prepareEnvironment({ ...opened, user: agent }, environment, { signal });
  for (const earlier of task.steps.slice(0, task.steps.indexOf(step) + 1)) {
    networks.enter(sandbox, setupNetwork(task, earlier));
    await prepareStep(sandbox, { step: earlier, cwd, user: agent, signal });
  }
  const judge = async () => {
    using container = await openTestContainer(sandbox, { owner: opened.user, tests: user });
    await placeWork(container.asRoot);
    networks.enter(sandbox, testsNetwork(task, step));
    const disk = { engine: place.engine, limitMb: environment.limits.storageMb };
    const run = await runTests(container, { check, folder, cwd, user, env, allowed, disk, signal });
    return await judgeTests(() => stopSandbox(sandbox), { check, run, uid: user.uid });
  };
  const { containerId } = sandbox;
  const memoryLimitBytes = opened.memory.limitBytes;
  return await asAgentsFault(judge, { ...place, containerId, memoryLimitBytes });
}
