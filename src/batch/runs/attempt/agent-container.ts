import { BrigError } from "../../../errors.js";
import type { Sandbox, StoppedSandbox, StoppedSandboxFiles } from "../../../sandbox/index.js";
import { containerOf, missingImage, stopSandbox } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import { openTestContainer, removeTests } from "../grading/run-tests.js";
import { type ImageUser, imageUser } from "../place/image-user.js";
import { makeDirectories } from "../place/make-directories.js";
import { prepareEnvironment } from "../place/prepare-environment.js";
import {
  agentNetworks,
  type OpenTaskSandbox,
  openTaskSandbox,
  type PhaseNetworks,
  recordedPlace,
  type TaskPlace,
} from "../place/task-sandbox.js";
import { type EmptyDirectory, emptyDirectories, timesTellApart } from "../place/upload-directory.js";

/** Directories that tasks of Harbor expect for the agent. What it leaves in the verifier's is removed before any tests run. */
const AGENT_DIRECTORIES = ["/logs/agent", "/logs/artifacts", "/logs/verifier"];

interface OpenAgentContainer extends OpenTaskSandbox {
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

/** The agent's container, which is stopped after each step and started again for the next. */
export class AttemptContainer {
  readonly cwd: string;
  readonly user: ImageUser;
  readonly memoryLimitBytes: number;
  readonly empty: OpenAgentContainer["empty"];
  readonly networks: OpenAgentContainer["networks"];
  readonly #testUsers: OpenAgentContainer["testUsers"];
  readonly #sandboxes: Sandbox[];
  #stopped: StoppedSandbox | null = null;

  constructor({ sandbox, cwd, user, memory, testUsers, empty, networks }: OpenAgentContainer) {
    this.empty = empty;
    this.networks = networks;
    this.#testUsers = testUsers;
    this.cwd = cwd;
    this.user = user;
    this.memoryLimitBytes = memory.limitBytes;
    this.#sandboxes = [sandbox];
  }

  userOfTests(step: TaskStep): ImageUser {
    return this.#testUsers.get(step) ?? this.user;
  }

  async running(): Promise<Sandbox> {
    if (this.#stopped !== null) this.#sandboxes.push(await this.#stopped.restart());
    this.#stopped = null;
    return this.#current;
  }

  /** Removes the tests, which may belong to another user, in directories that the agent has made its own. */
  async hideTests(): Promise<void> {
    using container = await openTestContainer(await this.running(), { owner: this.user, tests: this.user });
    await removeTests(container.asRoot);
    const wanted = AGENT_DIRECTORIES.map((path) => ({ path, mode: 0o755, owner: this.user }));
    await makeDirectories(container.asRoot, wanted);
  }

  /** Gives access to the container without stopping it, while programs that the agent started run on. */
  async unstopped(): Promise<StoppedSandboxFiles> {
    return containerOf(await this.running());
  }

  async stop(): Promise<StoppedSandbox> {
    this.#stopped = await stopSandbox(this.#current);
    return this.#stopped;
  }

  /** Removes it while something else goes on. `close` waits for that too. */
  closeEarly(): void {
    void this.close();
  }

  /** Never throws. */
  async close(): Promise<void> {
    for (const sandbox of this.#sandboxes.toReversed()) await sandbox[Symbol.asyncDispose]();
  }

  get #current(): Sandbox {
    return this.#sandboxes.at(-1) as Sandbox;
  }
}

/** Settings of the repository that would run a program are not obeyed. */
const PRELUDE = `
git() { command git -c safe.directory='*' -c core.fsmonitor= -c core.hooksPath=/dev/null -c gc.auto=0 "$@"; }
`;

/**
 * Commits that are not ancestors of the one checked out, wherever they are stored: the commits of all objects without
 * those that lead to HEAD. In the working directory, and in the directories directly in it.
 */
const COUNT = `${PRELUDE}
total=0
for directory in "$0" "$0"/*/; do
  [ -e "$directory/.git" ] && cd "$directory" || continue
  own=$(git rev-list --count HEAD 2> /dev/null) || own=0
  all=$(git cat-file --batch-all-objects --unordered --batch-check='%(objecttype)' 2> /dev/null | grep -c '^commit')
  total=$((total + all - own))
done
echo "$total"`;

const COUNT_LIMIT_MS = 60_000;
const REMOVE_LIMIT_MS = 900_000;

/**
 * Number of commits that an agent would find in the repository of its working directory and that do not lead to the one
 * checked out. 0 if there is no repository, no git, or too much to count.
 */
export async function countOtherCommits(
  sandbox: Pick<Sandbox, "exec">,
  { cwd, signal }: { cwd: string; signal?: AbortSignal | undefined },
): Promise<number> {
  const { exitCode, stdout } = await sandbox.exec(["/bin/sh", "-c", COUNT, cwd], {
    cwd: "/",
    timeoutMs: COUNT_LIMIT_MS,
    maxOutputBytes: 4096,
    signal,
  });
  const count = /^[0-9]{1,9}$/.exec(stdout.trim())?.[0];
  return exitCode === 0 && count !== undefined ? Number(count) : 0;
}

/** Objects are only packed anew if some are left over, because that takes long in a large repository. */
const REMOVE = `${PRELUDE}
set -e
cd "$0"
git rev-parse -q --verify 'HEAD^{commit}' > /dev/null
store=$(git rev-parse --git-common-dir)
store=$(cd "$store" && pwd)
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
for remote in $(git remote); do git remote remove "$remote" 2> /dev/null || true; done
git for-each-ref --format='%(refname)' | LC_ALL=C sort > "$lists/all"
git for-each-ref --merged=HEAD --format='%(refname)' | LC_ALL=C sort > "$lists/before"
LC_ALL=C comm -23 "$lists/all" "$lists/before" | sed 's/.*/option no-deref\\ndelete &/' | git update-ref --stdin
rm -rf "$store/logs" "$store/worktrees" "$store/lost-found" "$store/rebase-merge" "$store/rebase-apply" "$store/sequencer"
rm -f "$store"/*_HEAD "$store/AUTO_MERGE" "$store"/BISECT_* "$store"/objects/info/commit-graph "$store"/objects/pack/*.keep
rm -rf "$store/objects/info/commit-graphs"
reachable=$(git rev-list --objects --all --indexed-objects HEAD | wc -l)
stored=$(git cat-file --batch-all-objects --unordered --batch-check='%(objectname)' | wc -l)
if [ "$reachable" != "$stored" ] || [ -e "$store/objects/info/alternates" ]; then
  git repack -q -a -d
  rm -f "$store/objects/info/alternates"
  git prune --expire=now
fi`;

/**
 * Removes from a repository whatever does not lead to the commit that it has checked out: branches, tags, remotes,
 * the stash, the reflog, and all objects that nothing leads to. False if that did not succeed.
 */
export async function removeOtherCommits(
  sandbox: Pick<Sandbox, "exec">,
  { repository, signal }: { repository: string; signal?: AbortSignal | undefined },
): Promise<boolean> {
  const { exitCode } = await sandbox.exec(["/bin/sh", "-c", REMOVE, repository], {
    cwd: "/",
    timeoutMs: REMOVE_LIMIT_MS,
    maxOutputBytes: 4096,
    signal,
  });
  return exitCode === 0;
}
