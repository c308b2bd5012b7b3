import type { Sandbox } from "../../../../sandbox/index.js";
import { stopSandbox } from "../../../../sandbox/index.js";
import type { Task, TaskStep } from "../../../tasks/task.js";
import type { ImageUser } from "../../place/image-user.js";
import { makeDirectories } from "../../place/make-directories.js";
import { confirmationNetworks, setupNetwork, testsNetwork } from "../../place/phase-networks.js";
import { prepareEnvironment, prepareStep } from "../../place/prepare-environment.js";
import { openTaskSandbox, type TaskPlace } from "../../place/task-sandbox.js";
import type { TimeAllowed } from "../../processors/extended-limit.js";
import { asAgentsFault } from "../agents-fault.js";
import { type Judged, judgeTests } from "../judge-tests.js";
import { runTests } from "../run-tests.js";
import { openTestContainer } from "../test-container.js";

export interface FreshGrading {
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
export async function gradeFresh(
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
