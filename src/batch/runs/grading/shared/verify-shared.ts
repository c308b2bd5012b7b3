import { join, posix } from "node:path";
import type {
  ContainerChange,
  Engine,
  Sandbox,
  StoppedSandbox,
  StoppedSandboxFiles,
} from "../../../../sandbox/index.js";
import type { Task, TaskCopy, TaskStep } from "../../../tasks/task.js";
import type { ArtifactManifest } from "../../artifacts/artifact-manifest.js";
import { ImageFiles } from "../../place/image-files.js";
import type { ImageUser } from "../../place/image-user.js";
import { describePrograms, type RunningProgram } from "../../place/running-programs.js";
import { type PhaseNetworks, type TaskPlace, testsNetwork } from "../../place/task-sandbox.js";
import type { TimeAllowed } from "../../processors.js";
import { passes } from "../../results/attempt-outcome.js";
import type { Confirmation } from "../../results/attempt-result.js";
import { VERIFIER_PROOF, writeProof } from "../../write-proof.js";
import { confirmPass, notConfirmed, type PassToConfirm, workRoots } from "../confirm-pass.js";
import { asAgentsFault, judgeTests } from "../judge-tests.js";
import { KeptWork } from "../kept-work.js";
import { mainReward } from "../rewards.js";
import { openTestContainer, runTests } from "../run-tests.js";
import type { Verification } from "../verification.js";
import { neutralise } from "./neutralise.js";
import { Originals } from "./originals.js";
import { type SharedPlaces, trustedDirectories } from "./treatment.js";

/** The container that the agent worked in. It was stopped, and is stopped again afterwards. */
interface AgentsContainer {
  readonly cwd: string;
  readonly user: ImageUser;
  readonly memoryLimitBytes: number;
  readonly networks: Pick<PhaseNetworks, "enter">;
  running(): Promise<Sandbox>;
  stop(): Promise<StoppedSandbox>;
}

export interface SharedVerification {
  task: Task;
  step: TaskStep;
  imageId: string;
  container: AgentsContainer;
  /** User that the tests run as. */
  user: ImageUser;
  stopped: StoppedSandboxFiles;
  /** All that differs from the image. */
  changes: readonly ContainerChange[];
  /** Folder on the host; gets the output of the tests. */
  folder: string;
  allowed: TimeAllowed;
  /** Refused artifacts (`findings`), and notes without consequences. */
  manifest: Pick<ArtifactManifest, "findings" | "notes">;
  /** Programs that the agent left running, and whether they still run. */
  left: { programs: readonly RunningProgram[]; areKept: boolean };
  /** Called before each grading of a pass in a fresh container. */
  onGrading?: PassToConfirm["onGrading"];
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Runs the tests of a step in the agent's container, which is started again for them: every process of the agent is
 * dead, and what tests would obey is as the image has it. A pass is then graded again in a fresh container. Errors: those of the engine and of the host's files.
 */
export async function verifyShared(
  place: TaskPlace,
  verification: SharedVerification,
): Promise<Verification> {
  const {
    task,
    step,
    imageId,
    container,
    user,
    stopped,
    changes,
    folder,
    allowed,
    manifest,
    left,
    onGrading,
  } = verification;
  const { check } = step.verifier;
  const { signal } = place;
  const findings = [...manifest.findings, ...leftRunning(left)];
  const variables = await variablesOf(stopped.engine, imageId);
  const path = pathOf(variables, verification);
  const env = { PATH: path, ...step.verifier.env };
  const places = sharedPlaces(verification, { path, env: variables });
  await using pass = new SharedPass();
  const judge = async () => {
    const { cwd, user: owner } = container;
    const sandbox = await container.running();
    using opened = await openTestContainer(sandbox, { owner, tests: user });
    await writeProof({ folder, name: VERIFIER_PROOF }, opened.asTests.proof);
    findings.push(...(await putBack(opened.asRoot, verification, places)));
    await pass.keepWork(opened.asRoot, { step, cwd, folder, engine: stopped.engine, signal });
    const disk = { engine: stopped.engine, limitMb: task.environment.limits.storageMb };
    // Everything of the agent is dead unless the task keeps it, and what tests would obey is put back.
    container.networks.enter(sandbox, testsNetwork(task, step));
    const run = await runTests(opened, { check, folder, cwd, user, env, allowed, disk, signal });
    const again = await container.stop();
    return await judgeTests(async () => again, { check, run, uid: user.uid });
  };
  const { memoryLimitBytes } = container;
  const judged = await asAgentsFault(judge, { ...stopped, memoryLimitBytes, isAgents: true, signal });
  const isPass = passes({ status: "scored", reward: mainReward(judged.rewards ?? {}) });
  const grading = { task, step, imageId, agent: container.user, user, env, allowed, folder };
  const confirmation = isPass
    ? await pass.confirm(place, {
        ...grading,
        stopped,
        changes,
        keptPrograms: left.areKept ? left.programs : [],
        onGrading,
      })
    : null;
  const notes = left.areKept ? [...manifest.notes, ...leftRunning(left)] : manifest.notes;
  return { mode: "shared", findings, notes, confirmation, ...judged };
}

/** Tests of a task that is about a running program fail without it, so nobody should have to guess why. */
function leftRunning({ programs, areKept }: SharedVerification["left"]): string[] {
  if (programs.length === 0) return [];
  const what = areKept ? "still ran while the tests did" : "still ran, and was ended before the tests";
  return [`${describePrograms(programs)} ${what}`];
}

async function putBack(
  sandbox: Sandbox,
  { task, step, imageId, container, stopped, changes }: SharedVerification,
  places: SharedPlaces,
): Promise<string[]> {
  await using image = new ImageFiles(stopped, imageId);
  const originals = new Originals(image, {
    copies: givenCopies(task, step, container.cwd),
    owner: container.user,
  });
  return await neutralise(sandbox, { changes, originals, places });
}

/** Files copied into the environment, and those of the steps up to this one. */
function givenCopies(
  { environment, steps }: Task,
  step: TaskStep,
  cwd: string,
): Pick<TaskCopy, "source" | "target" | "exclude">[] {
  const inCwd = (source: string | null) => (source === null ? [] : [{ source, target: cwd, exclude: [] }]);
  const ofSteps = steps.slice(0, steps.indexOf(step) + 1).flatMap(({ files }) => inCwd(files));
  return [...inCwd(environment.files), ...(environment.copies ?? []), ...ofSteps];
}

/** The variables of the image. */
async function variablesOf(
  engine: Pick<Engine, "inspectImage">,
  imageId: string,
): Promise<Readonly<Record<string, string>>> {
  const lines = (await engine.inspectImage(imageId))?.env ?? [];
  return Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

/** The PATH that the image and the task's author set, without directories that belong to the agent. */
function pathOf(
  ofImage: Readonly<Record<string, string>>,
  { task, container }: Pick<SharedVerification, "task" | "container">,
): string {
  const path = task.environment.env.PATH ?? ofImage.PATH ?? DEFAULT_PATH;
  const trusted = trustedDirectories(path, container);
  return trusted.length === 0 ? DEFAULT_PATH : trusted.join(":");
}

function sharedPlaces(
  { task, step, container, user }: SharedVerification,
  { path, env }: { path: string; env: Readonly<Record<string, string>> },
): SharedPlaces {
  const { cwd } = container;
  const absolute = (variable: string | undefined) =>
    variable?.startsWith("/") ? [posix.normalize(variable)] : [];
  const variables = { ...env, ...task.environment.env, ...step.verifier.env };
  const homes = ["/root", container.user.home, user.home, ...absolute(variables.HOME)];
  return {
    cwd,
    artifacts: step.artifacts.map(({ source }) => posix.resolve(cwd, source)),
    programs: [...new Set([...path.split(":"), ...DEFAULT_PATH.split(":")])],
    homes: [...new Set(homes)],
    settings: absolute(variables.XDG_CONFIG_HOME).filter((directory) => directory !== "/"),
    instruction: step.instruction,
  };
}

/** Folder in the folder of the step, until its verification is over. */
const WORK_FOLDER = ".work";

interface WorkPlace {
  engine: Pick<Engine, "readArchive">;
  step: TaskStep;
  cwd: string;
  /** Folder of the step, on the host. */
  folder: string;
  signal: AbortSignal | undefined;
}

/** A pass that tests in the agent's container may give, and the work that it should rest on. */
class SharedPass implements AsyncDisposable {
  #work: KeptWork | null = null;
  #whyNot = "the tests ended before the work could be kept";

  /** Call this before the tests run. A failure here is no reason not to run them. Error: the signal's reason. */
  async keepWork(sandbox: Sandbox, { engine, step, cwd, folder, signal }: WorkPlace): Promise<void> {
    try {
      const kind = (await sandbox.files.stat(cwd, { followSymlinks: false })).type;
      if (cwd === "/" || kind !== "directory") {
        this.#whyNot = `the working directory ${cwd === "/" ? "is the whole file system" : "is a link"}, so what lies outside of it is not known`;
        return;
      }
      const options = { roots: workRoots(step, cwd), folder: join(folder, WORK_FOLDER), signal };
      this.#work = await KeptWork.keep({ engine, containerId: sandbox.containerId }, options);
      if (this.#work === null) this.#whyNot = "the work is too large to be kept for a second grading";
    } catch (error) {
      signal?.throwIfAborted();
      this.#whyNot = `the work could not be kept: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  async confirm(place: TaskPlace, pass: Omit<PassToConfirm, "work">): Promise<Confirmation> {
    const work = this.#work;
    return work === null ? notConfirmed(this.#whyNot) : await confirmPass(place, { ...pass, work });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#work?.[Symbol.asyncDispose]();
  }
}
