import { isDeepStrictEqual } from "node:util";
import { isBrigError } from "../../../errors.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type { ContainerChange, StoppedSandboxFiles } from "../../../sandbox/index.js";
import type { TaskImage, TaskStep } from "../../tasks/task.js";
import { artifactSources } from "../artifacts/artifact-paths.js";
import { CHANGES_FILE, writeChanges } from "../changes/write-changes.js";
import { EgressFile } from "../evidence/egress-file.js";
import { infrastructureFailure, ungradable } from "../evidence/explain-failure.js";
import { AGENT_PROOF, writeProof } from "../evidence/write-proof.js";
import { verifyShared } from "../grading/shared/verify-shared.js";
import { stepFolder } from "../grading/step-folder.js";
import type { Verification } from "../grading/verification.js";
import { verifySeparately } from "../grading/verify-separately.js";
import type { ReadyImage } from "../images/task-images.js";
import { stillEmpty, untouched } from "../place/empty-directories.js";
import { runningPrograms } from "../place/running-programs.js";
import type { OpenTaskSandbox, TaskPlace } from "../place/task-sandbox.js";
import { type TimeAllowed, timeAllowed } from "../processors/extended-limit.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { openAgentContainer } from "./agent-container.js";
import type { Attempt, OnStage } from "./attempt.js";
import { AttemptContainer } from "./attempt-container.js";
import { AttemptProgress } from "./attempt-progress.js";
import { driveAgent } from "./drive-agent.js";
import { exportWork } from "./export-work.js";
import { readResources } from "./resources.js";
import { writeResult } from "./result-file.js";
import { refuseUnsupported } from "./unsupported.js";

/**
 * Makes one attempt at a task: image, container, agent, export, grade. `result.json` is written last, whole or not at
 * all. A fault of the infrastructure is a result too. Throws, without writing a result, what the user can only
 * mend by changing the task or the settings, such as `usage.invalid`; one of many throws only what the task asks for and
 * no attempt can give.
 */
export async function runAttempt(attempt: Attempt): Promise<AttemptResult> {
  refuseUnsupported(attempt.task);
  const progress = new AttemptProgress(attempt);
  try {
    await runStages(attempt, progress);
  } catch (error) {
    if (attempt.signal?.aborted) progress.cancel();
    else await failOrThrow(attempt, progress, { error, opened: null });
  }
  const result = progress.result(new Date());
  await writeResult(attempt.folder, result);
  return result;
}

/** Ends the attempt with what the infrastructure did to it. What is no fault of the infrastructure is thrown, unless it is one of many. */
async function failOrThrow(
  { engine, isOneOfMany = false }: Attempt,
  progress: AttemptProgress,
  { error, opened }: { error: unknown; opened: OpenTaskSandbox | null },
): Promise<void> {
  // An agent's container that ends by itself while the agent works is dealt with there.
  const container = progress.stage === "verify" ? null : opened;
  const failure = await infrastructureFailure(engine, {
    error,
    stage: progress.stage,
    containerId: container?.sandbox.containerId ?? null,
    memoryLimitBytes: container?.memory.limitBytes ?? null,
  });
  if (failure === null && !isOneOfMany) throw error;
  progress.fail(failure ?? ungradable(error));
}

async function runStages(attempt: Attempt, progress: AttemptProgress): Promise<void> {
  const { task } = attempt;
  enter(attempt, progress, "image");
  using images = await readyImages(attempt);
  progress.imageId = images.ofAgent;
  const egress = new EgressFile(attempt.folder);
  const place: TaskPlace = { ...placeOf(attempt), onEgress: egress.add };
  progress.onEntering = (stage) => egress.enter(stage);
  enter(attempt, progress, "start");
  const opened = await openAgentContainer(place, { task, imageId: images.ofAgent });
  progress.started(opened.memory);
  const container = new AttemptContainer(opened);
  progress.noticed(opened.findings);
  try {
    await writeProof({ folder: attempt.folder, name: AGENT_PROOF }, opened.sandbox.proof);
    progress.wrote("proof", AGENT_PROOF);
    for (const step of task.steps) {
      const given = { imageId: images.ofAgent, verifierImage: images.ofVerifier(step) };
      if (!(await runStep(attempt, progress, { step, container, place, egress, ...given }))) return;
    }
  } catch (error) {
    if (attempt.signal?.aborted) throw error;
    // The engine knows more of a container before it is removed.
    await failOrThrow(attempt, progress, { error, opened });
  } finally {
    await container.close();
    egress.flush();
  }
}

interface AttemptImages extends Disposable {
  ofAgent: string;
  ofVerifier(step: TaskStep): string;
}

/** All images are looked for first, so that no agent works for nothing. */
async function readyImages({ task, images, signal }: Attempt): Promise<AttemptImages> {
  const held: ReadyImage[] = [];
  const release = () => {
    for (const image of held) image[Symbol.dispose]();
  };
  try {
    const ready = async (image: TaskImage) => {
      held.push(await images.ready(image, { task: task.name, signal }));
      return held.at(-1)?.id ?? "";
    };
    const ofAgent = await ready(task.environment.image);
    const others = new Map<TaskStep, string>();
    for (const step of task.steps) {
      const image = step.verifier.environment?.image;
      if (image !== undefined && !isDeepStrictEqual(image, task.environment.image))
        others.set(step, await ready(image));
    }
    return { ofAgent, ofVerifier: (step) => others.get(step) ?? ofAgent, [Symbol.dispose]: release };
  } catch (error) {
    release();
    throw error;
  }
}

interface StepRun {
  step: TaskStep;
  container: AttemptContainer;
  place: TaskPlace;
  egress: EgressFile;
  imageId: string;
  verifierImage: string;
}

/** False if the steps after this one are not to be run. */
async function runStep(
  attempt: Attempt,
  progress: AttemptProgress,
  { step, container, place, egress, imageId, verifierImage }: StepRun,
): Promise<boolean> {
  const { task, signal } = attempt;
  const folder = stepFolder(attempt.folder, { task, step });
  await makeDirectory(folder);
  enter(attempt, progress, "agent");
  const sandbox = await container.running();
  const before = task.steps[task.steps.indexOf(step) - 1];
  if (before?.verifier.mode === "shared") await container.hideTests();
  egress.enter("start");
  const onPrepared = () => egress.enter("agent");
  const working = { step, sandbox, container, onPrepared };
  const { outcome, time } = await driveAgent({ ...attempt, folder }, working);
  progress.agentEnded(step, { outcome, time, folder });
  const { cwd } = container;
  const looked = new Set([cwd, ...artifactSources(step.artifacts, cwd)]);
  const made = container.empty.filter(({ path }) => looked.has(path));
  const [resources, seenEmpty] = await Promise.all([readResources(sandbox), stillEmpty(sandbox, made)]);
  progress.used(resources);
  const isShared = step.verifier.mode === "shared";
  const keepsServices = isShared && (attempt.limits.keepServices ?? step.verifier.keepsServices ?? false);
  const programs = isShared ? await runningPrograms(sandbox, signal) : [];
  enter(attempt, progress, "export");
  const stopped = keepsServices ? await container.unstopped() : await container.stop();
  const empty = await untouched(stopped, seenEmpty, signal);
  const work = await exportWork(stopped, { step, cwd, imageId, empty, folder, signal });
  if (work.kind === "not-copied") {
    progress.verified(step, { verification: work.verification, folder, durationMs: 0 });
    return meets(work.verification, step);
  }
  const { changes, manifest } = work;
  await keepChanges(attempt, progress, { stopped, step, cwd, changes });
  enter(attempt, progress, "verify");
  if (step.verifier.mode === "separate" && step === task.steps.at(-1)) container.closeEarly();
  const beganAt = performance.now();
  const request = { task, step, folder, allowed: timeForTests(attempt, step) };
  const verification: Verification =
    step.verifier.mode === "separate"
      ? await verifySeparately(place, { ...request, imageId: verifierImage, manifest })
      : await verifyShared(place, {
          ...{ ...request, imageId, container, stopped, changes, manifest },
          user: container.userOfTests(step),
          left: { programs, areKept: keepsServices },
          onGrading: (grading) => enter(attempt, progress, "confirm", grading),
        });
  progress.verified(step, { verification, folder, durationMs: performance.now() - beganAt });
  return meets(verification, step);
}

interface KeptChanges {
  stopped: StoppedSandboxFiles;
  step: TaskStep;
  cwd: string;
  changes: readonly ContainerChange[];
}

/** Keeps the agent's changes for people to look at. No grade depends on them, so a failure of the engine is ignored. */
async function keepChanges(
  { task, folder, signal }: Attempt,
  progress: AttemptProgress,
  { stopped, step, cwd, changes }: KeptChanges,
): Promise<void> {
  const steps = task.steps.slice(0, task.steps.indexOf(step) + 1);
  const { files: given, copies = [] } = task.environment;
  const whole = copies.filter(({ target, exclude }) => target === cwd && exclude.length === 0);
  const directories = [given, ...whole.map(({ source }) => source), ...steps.map(({ files }) => files)];
  const copied = directories.filter((one) => one !== null);
  const request = { imageId: progress.imageId ?? "", changes, cwd, copied, folder, signal };
  try {
    if (await writeChanges(stopped, request)) progress.wrote("diff", CHANGES_FILE);
  } catch (error) {
    if (!isBrigError(error, "engine.failed")) throw error;
  }
}

function enter({ onStage }: Attempt, progress: AttemptProgress, ...at: Parameters<OnStage>): void {
  const [stage] = at;
  progress.stage = stage;
  progress.onEntering(stage);
  onStage?.(...at);
}

function placeOf({ engine, environment, runtime, limits, signal }: Attempt): TaskPlace {
  return { engine, environment, runtime, limits, signal };
}

function timeForTests({ limits }: Attempt, { verifier }: TaskStep): TimeAllowed {
  const { timeoutMultiplier = 1, timeoutExtension } = limits;
  const { timeoutSec } = verifier;
  return timeAllowed(timeoutSec === null ? null : timeoutSec * timeoutMultiplier, timeoutExtension);
}

function meets({ rewards }: Verification, { minRewards }: TaskStep): boolean {
  return Object.entries(minRewards ?? {}).every(
    ([key, least]) => (rewards?.[key] ?? Number.NEGATIVE_INFINITY) >= least,
  );
}
