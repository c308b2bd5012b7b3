import { join, posix } from "node:path";
import type { Sandbox, TarEntry } from "../../../sandbox/index.js";
import { containerOf, stopSandbox, streamTar } from "../../../sandbox/index.js";
import type { Task, TaskStep } from "../../tasks/task.js";
import { ARTIFACTS_FOLDER, type ArtifactManifest } from "../artifacts/artifact-manifest.js";
import { hostContent } from "../place/host-entry.js";
import { makeDirectories, standAs } from "../place/make-directories.js";
import { prepareEnvironment } from "../place/prepare-environment.js";
import {
  openTaskSandbox,
  type TaskPlace,
  testsNetwork,
  verifierEnvironment,
  verifierNetworks,
} from "../place/task-sandbox.js";
import type { TimeAllowed } from "../processors.js";
import { VERIFIER_PROOF, writeProof } from "../write-proof.js";
import { asAgentsFault, judgeTests } from "./judge-tests.js";
import { openTestContainer, requireTests, runTests } from "./run-tests.js";
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

/**
 * Makes the artifacts appear in a fresh container at the paths that they had in the agent's, and removes what the
 * agent had removed. Nothing of the agent has run in the container yet.
 */
async function placeArtifacts(
  sandbox: Sandbox,
  { manifest, folder }: { manifest: ArtifactManifest; folder: string },
): Promise<void> {
  for (const path of manifest.deleted) await sandbox.files.remove(path, { recursive: true, force: true });
  if (await areFewDirectories(sandbox, manifest)) return;
  const parents = new Set(manifest.entries.map(({ path }) => posix.dirname(path)));
  const made = new Set(manifest.entries.filter(({ kind }) => kind === "directory").map(({ path }) => path));
  for (const parent of parents)
    if (!made.has(parent)) await sandbox.files.mkdir(parent, { recursive: true, mode: 0o755 });
  const { engine, containerId } = containerOf(sandbox);
  await engine.putArchive(containerId, "/", streamTar(packed(manifest, join(folder, ARTIFACTS_FOLDER))));
}

/** Number of artifacts above which unpacking by the engine is faster. */
const FEW = 10;

/** Whether a few directories without files are all, and stand there now. Their times are those of the fresh container. */
async function areFewDirectories(sandbox: Sandbox, { entries }: ArtifactManifest): Promise<boolean> {
  if (entries.length > FEW || entries.some(({ kind }) => kind !== "directory")) return false;
  const wanted = entries.map(({ path, mode, uid, gid }) => ({ path, mode, owner: { uid, gid } }));
  await makeDirectories(sandbox, wanted);
  return await standAs(sandbox, wanted);
}

function* packed({ entries }: ArtifactManifest, root: string): Iterable<TarEntry> {
  for (const { path, kind, file, sizeBytes, mode, uid, gid, modifiedMs } of entries) {
    const header = { path: path.slice(1), mode, owner: { uid, gid }, modifiedAt: new Date(modifiedMs) };
    if (kind === "directory") yield { ...header, kind };
    else yield { ...header, kind, sizeBytes, content: () => hostContent(join(root, file), sizeBytes) };
  }
}
