import { BrigError } from "../../../errors.js";
import { missingImage } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import { type EmptyDirectory, emptyDirectories, timesTellApart } from "../place/empty-directories.js";
import { countOtherCommits, removeOtherCommits } from "../place/git-history.js";
import { type ImageUser, imageUser } from "../place/image-user.js";
import { makeDirectories } from "../place/make-directories.js";
import { agentNetworks, type PhaseNetworks } from "../place/phase-networks.js";
import { prepareEnvironment } from "../place/prepare-environment.js";
import {
  type OpenTaskSandbox,
  openTaskSandbox,
  recordedPlace,
  type TaskPlace,
} from "../place/task-sandbox.js";

/** Directories that tasks of Harbor expect for the agent. What it leaves in the verifier's is removed before any tests run. */
export const AGENT_DIRECTORIES = ["/logs/agent", "/logs/artifacts", "/logs/verifier"];

export interface OpenAgentContainer extends OpenTaskSandbox {
  /** The user that the tests of each step run as, by the image's own names; only of steps whose tests share this container. */
  testUsers: ReadonlyMap<TaskStep, ImageUser>;
  /** Directories that brig made for the agent. Files of the task may be in them by now. */
  empty: readonly EmptyDirectory[];
  /** Networks of the phases. Nothing can be reached before the first phase is entered. */
  networks: PhaseNetworks;
  /** Things in the container that may tell the agent the answer, one sentence each. */
  findings: readonly string[];
}

/**
 * Opens the container in which the agent works, with the task's files, once it is healthy. Errors: those of
 * `openTaskSandbox`, `UnhealthyContainer`.
 */
export async function openAgentContainer(
  place: TaskPlace,
  { task, imageId }: { task: Task; imageId: string },
): Promise<OpenAgentContainer> {
  const { environment } = task;
  const networks = agentNetworks(task);
  const opened = await openTaskSandbox(place, {
    environment,
    imageId,
    user: agentUser(task),
    network: networks.opened,
    env: environment.env,
  });
  try {
    const { sandbox, user: owner, cwd } = opened;
    const { signal } = place;
    const testUsers = await usersOfTests(place, { task, imageId });
    const wanted = [...AGENT_DIRECTORIES, cwd].map((path) => ({ path, mode: 0o755, owner }));
    const empty = await emptyDirectories(sandbox, await makeDirectories(sandbox, wanted));
    const madeAt = performance.now();
    networks.enter(sandbox, environment.network);
    await prepareEnvironment(opened, environment, { signal });
    const findings = await hideFuture(opened, task, { signal, hasFiles: mayHaveFiles(opened, task, empty) });
    await timesTellApart(madeAt, signal);
    return { ...opened, testUsers, empty, networks, findings };
  } catch (error) {
    await opened.sandbox[Symbol.asyncDispose]();
    throw error;
  }
}

/** Whether the working directory is more than an empty one that brig has just made. */
function mayHaveFiles(
  { cwd }: OpenTaskSandbox,
  { environment: { files, copies = [], healthcheck } }: Task,
  empty: readonly EmptyDirectory[],
): boolean {
  return (
    files !== null || copies.length > 0 || healthcheck !== null || empty.every(({ path }) => path !== cwd)
  );
}

/** A repository of SWE-bench knows the commit that solves the task. In others, other commits may be a part of the task. */
async function hideFuture(
  { sandbox, cwd }: OpenTaskSandbox,
  { steps }: Task,
  { signal, hasFiles }: { signal: AbortSignal | undefined; hasFiles: boolean },
): Promise<string[]> {
  for (const { verifier } of steps)
    if (verifier.check.kind === "swe-bench")
      await removeOtherCommits(sandbox, { repository: verifier.check.repository, signal });
  const count = hasFiles ? await countOtherCommits(sandbox, { cwd, signal }) : 0;
  if (count === 0) return [];
  return [
    `the repository of the working directory has ${count} commits that do not lead to the one checked out`,
  ];
}

/** Looks users up before the agent runs, since it could give them other numbers. Error: `usage.invalid` for one that the image lacks. */
async function usersOfTests(
  place: TaskPlace,
  { task, imageId }: { task: Task; imageId: string },
): Promise<Map<TaskStep, ImageUser>> {
  const shared = task.steps.filter(({ verifier }) => verifier.mode === "shared");
  const users = new Map<TaskStep, ImageUser>();
  if (shared.length === 0) return users;
  const image = await place.engine.inspectImage(imageId);
  if (image === null) throw missingImage(imageId);
  for (const step of shared)
    users.set(step, await imageUser(recordedPlace(place), { image, user: step.verifier.user }));
  return users;
}

/** One container is for all steps, so they have to agree. */
function agentUser({ name, steps }: Task): string | null {
  const [first = null, ...others] = steps.map(({ agent }) => agent.user);
  if (others.every((other) => other === first)) return first;
  throw new BrigError(`the steps of the task ${name} have different users for the agent`, {
    code: "usage.invalid",
    hint: "all steps run in one container, whose user cannot change",
  });
}
