import { stopSandbox } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import type { ArtifactManifest } from "../artifacts/artifact-manifest.js";
import { placeArtifacts } from "../artifacts/place-artifacts.js";
import { VERIFIER_PROOF, writeProof } from "../evidence/write-proof.js";
import { makeDirectories } from "../place/make-directories.js";
import { testsNetwork, verifierEnvironment, verifierNetworks } from "../place/phase-networks.js";
import { prepareEnvironment } from "../place/prepare-environment.js";
import { openTaskSandbox, type TaskPlace } from "../place/task-sandbox.js";
import type { TimeAllowed } from "../processors/extended-limit.js";
import { asAgentsFault } from "./agents-fault.js";
import { judgeTests } from "./judge-tests.js";
import { requireTests, runTests } from "./run-tests.js";
import { openTestContainer } from "./test-container.js";
import type { Verification } from "./verification.js";

export interface SeparateVerification {
  task: Task;
  step: TaskStep;
  /** Image of the verifier's environment, or of the task's. */
  imageId: string;
  manifest: ArtifactManifest;
  /** Folder on the host: has the artifacts, and gets the output of the tests. */
  folder: string;
  allowed: TimeAllowed;
}

/**
 * Runs the tests of a step in a fresh container from the image, which gets the artifacts and nothing else of the
 * agent's container. Errors: those of opening the container, of the engine and of the host's files.
 */
export async function verifySeparately(
  place: TaskPlace,
  { task, step, imageId, manifest, folder, allowed }: SeparateVerification,
): Promise<Verification> {
  const { verifier } = step;
  const environment = verifierEnvironment(task, step);
  const networks = verifierNetworks(task, step);
  const opened = await openTaskSandbox(place, {
    environment,
    imageId,
    user: verifier.user ?? "root",
    network: networks.opened,
    env: environment.env,
  });
  await using sandbox = opened.sandbox;
  await writeProof({ folder, name: VERIFIER_PROOF }, sandbox.proof);
  const { signal } = place;
  const { cwd, user } = opened;
  await makeDirectories(sandbox, [{ path: cwd, mode: 0o755, owner: user }]);
  networks.enter(sandbox, environment.network);
  await prepareEnvironment(opened, environment, place);
  const disk = { engine: place.engine, limitMb: environment.limits.storageMb };
  const test = { check: verifier.check, folder, cwd, user, env: verifier.env, allowed, disk, signal };
  const judge = async () => {
    using container = await openTestContainer(sandbox, { owner: user, tests: user });
    await requireTests(container, verifier.check);
    await placeArtifacts(container.asRoot, { manifest, folder });
    networks.enter(sandbox, testsNetwork(task, step));
    const run = await runTests(container, test);
    return await judgeTests(() => stopSandbox(sandbox), { check: verifier.check, run, uid: opened.user.uid });
  };
  const memoryLimitBytes = opened.memory.limitBytes;
  const judged = await asAgentsFault(judge, { ...place, containerId: sandbox.containerId, memoryLimitBytes });
  const { findings, notes } = manifest;
  return { mode: "separate", findings, notes, confirmation: null, ...judged };
}
