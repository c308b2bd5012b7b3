import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { inSpan } from "../../../agent/index.js";
import { isBrigError } from "../../../errors.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import type {
  ContainerChange,
  EgressAttempt,
  EgressEntry,
  ReadyImage,
  StoppedSandboxFiles,
} from "../../../sandbox/index.js";
import { EgressLog } from "../../../sandbox/index.js";
import type { TaskImage, TaskStep } from "../../tasks/task.js";
import type { ArtifactManifest } from "../artifacts/artifact-manifest.js";
import { artifactSources } from "../artifacts/artifact-paths.js";
import { exportArtifacts } from "../artifacts/export-artifacts.js";
import { CHANGES_FILE, writeChanges } from "../changes.js";
import { changesBelow } from "../changes-below.js";
import { infrastructureFailure, ungradable } from "../evidence.js";
import { stepFolder, timeForTests } from "../grading/run-tests.js";
import { verifyShared } from "../grading/shared/verify-shared.js";
import type { Verification } from "../grading/verification.js";
import { verifySeparately } from "../grading/verify-separately.js";
import { runningPrograms } from "../place/running-programs.js";
import type { OpenTaskSandbox, TaskPlace } from "../place/task-sandbox.js";
import { type EmptyDirectory, stillEmpty, untouched } from "../place/upload-directory.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { AGENT_PROOF, writeProof } from "../write-proof.js";
import { AttemptContainer, openAgentContainer } from "./agent-container.js";
import { type Attempt, type AttemptStage, type OnStage, writeResult } from "./attempt.js";
import { AttemptProgress, readResources } from "./attempt-progress.js";
import { driveAgent } from "./drive-agent.js";
import { refuseUnsupported } from "./unsupported.js";

/**
 * Makes one attempt at a task: image, container, agent, export, grade. `result.json` is written last, whole or not at
 * all. A fault of the infrastructure is a result too. Throws, without writing a result, what the user can only
 * mend by changing the task or the settings, such as `usage.invalid`; one of many throws only what the task asks for and
 * no attempt can give.
 */
export async function runAttempt(attempt: Attempt): Promise<AttemptResult> {
  refuseUnsupported(attempt.task);
  const { task, agent } = attempt;
  const facts = {
    "brig.task.name": task.name,
    "brig.attempt.number": attempt.attempt,
    "gen_ai.agent.name": agent.name,
  };
  const factsOf = ({ status }: AttemptResult) => ({ "brig.attempt.status": status });
  return await inSpan({ name: `attempt ${task.name}`, facts, factsOf }, () => makeAttempt(attempt));
}

async function makeAttempt(attempt: Attempt): Promise<AttemptResult> {
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
  const request = { task, step, folder, allowed: timeForTests(step, attempt.limits) };
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

function meets({ rewards }: Verification, { minRewards }: TaskStep): boolean {
  return Object.entries(minRewards ?? {}).every(
    ([key, least]) => (rewards?.[key] ?? Number.NEGATIVE_INFINITY) >= least,
  );
}

type ExportedWork =
  | { kind: "exported"; changes: ContainerChange[]; manifest: ArtifactManifest }
  | { kind: "not-copied"; verification: Verification };

interface ExportPlace {
  step: TaskStep;
  cwd: string;
  imageId: string;
  empty: readonly EmptyDirectory[];
  folder: string;
  signal: AbortSignal | undefined;
}

/**
 * Asks what the agent has changed, and takes the artifacts to the host. An agent can make trees whose paths are longer than any
 * engine can read, or more files than can be looked at: that gives no reward, and not another try. Errors: the engine's other ones, and those of the host's files.
 */
async function exportWork(stopped: StoppedSandboxFiles, place: ExportPlace): Promise<ExportedWork> {
  const { step, cwd, empty, folder, signal } = place;
  try {
    const changes = await changesOf(stopped, place);
    const { artifacts } = step;
    const manifest = await exportArtifacts(stopped, { artifacts, changes, empty, cwd, folder, signal });
    return { kind: "exported", changes, manifest };
  } catch (error) {
    const message = isBrigError(error, "engine.failed") ? tooMuch[error.errno ?? ""] : undefined;
    if (message === undefined) throw error;
    const none = { rewards: null, exitCode: null, tests: null, time: null };
    const said = { findings: [], notes: [], confirmation: null };
    const { mode } = step.verifier;
    return { kind: "not-copied", verification: { ...none, ...said, mode, verifier: "no-reward", message } };
  }
}

const tooMuch: Readonly<Record<string, string>> = {
  ENAMETOOLONG: "what the agent left has paths that are too long to be read",
  EFBIG: "the agent has changed too many files to look at",
};

/** Tests in the same container would see any change; others only see artifacts. */
async function changesOf(
  stopped: StoppedSandboxFiles,
  { step, cwd, imageId, empty, signal }: ExportPlace,
): Promise<ContainerChange[]> {
  const { engine, containerId } = stopped;
  if (step.verifier.mode === "shared")
    return await engine.containerChanges(containerId, signal && { signal });
  const directories = [cwd, ...artifactSources(step.artifacts, cwd)];
  return await changesBelow(stopped, { containerId, imageId, directories, empty, signal });
}

/** File in the folder of an attempt that lists what programs in its containers tried to reach. Missing if there was no such attempt. */
const EGRESS_FILE = "egress.jsonl";

/**
 * Writes each entry at once, with the stage in which the connection began: it may be cut in a later one. A disk that is
 * full costs the rest of the file, and not the attempt.
 */
class EgressFile {
  readonly #path: string;
  readonly #logs = new Map<AttemptStage, EgressLog>();
  readonly #entered: { stage: AttemptStage; fromMs: number }[] = [];
  #hasFailed = false;

  constructor(folder: string) {
    this.#path = join(folder, EGRESS_FILE);
  }

  enter(stage: AttemptStage): void {
    this.flush();
    this.#entered.push({ stage, fromMs: Date.now() });
  }

  readonly add = (attempt: EgressAttempt): void => {
    const began = this.#entered.findLast(({ fromMs }) => fromMs <= attempt.startedAtMs) ?? this.#entered[0];
    const stage = began?.stage ?? "start";
    const log = this.#logs.get(stage) ?? new EgressLog((entry) => this.#write(stage, entry));
    this.#logs.set(stage, log);
    log.add(attempt);
  };

  flush(): void {
    for (const log of this.#logs.values()) log.flush();
  }

  #write(stage: AttemptStage, { startedAtMs, phase: _, ...entry }: EgressEntry): void {
    if (this.#hasFailed) return;
    const line = { stage, startedAt: new Date(startedAtMs).toISOString(), ...entry };
    try {
      appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    } catch {
      this.#hasFailed = true;
    }
  }
}
