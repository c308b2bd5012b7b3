import { posix } from "node:path";
import type { ContainerChange, Engine } from "../../../docker/engine-types.js";
import type { Sandbox } from "../../../sandbox/sandbox.js";
import type { StoppedSandbox } from "../../../sandbox/stopped/stopped-sandbox.js";
import type { Task, TaskCopy, TaskStep } from "../../../tasks/task.js";
import { VERIFIER_PROOF, writeProof } from "../../evidence/write-proof.js";
import { openImageFiles } from "../../place/image-files.js";
import type { ImageUser } from "../../place/image-user.js";
import { type PhaseNetworks, testsNetwork } from "../../place/phase-networks.js";
import type { TimeAllowed } from "../../processors/extended-limit.js";
import { asAgentsFault } from "../agents-fault.js";
import { judgeTests } from "../judge-tests.js";
import { runTests } from "../run-tests.js";
import { openTestContainer } from "../test-container.js";
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
  /** Whom the tests run as. */
  user: ImageUser;
  stopped: StoppedSandbox;
  /** All that differs from the image. */
  changes: readonly ContainerChange[];
  /** On the host; gets the output of the tests. */
  folder: string;
  allowed: TimeAllowed;
  /** What was refused of the artifacts. */
  findings: readonly string[];
  signal?: AbortSignal | undefined;
}

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Runs the tests of a step in the agent's container, which is started again for them: every process of the agent is
 * dead, and what tests would obey is as the image has it. Errors: those of the engine and of the host's files.
 */
export async function verifyShared(verification: SharedVerification): Promise<Verification> {
  const { step, container, user, stopped, folder, allowed, signal } = verification;
  const { check } = step.verifier;
  const findings = [...verification.findings];
  const path = await pathOf(stopped.engine, verification);
  const places = sharedPlaces(verification, path);
  const judge = async () => {
    const { cwd, user: owner } = container;
    const sandbox = await container.running();
    using opened = await openTestContainer(sandbox, { owner, tests: user });
    await writeProof({ folder, name: VERIFIER_PROOF }, opened.asTests.proof);
    findings.push(...(await putBack(opened.asRoot, verification, places)));
    const env = { PATH: path, ...step.verifier.env };
    const disk = { engine: stopped.engine, limitMb: verification.task.environment.limits.storageMb };
    // Everything of the agent is dead, and what tests would obey is put back.
    container.networks.enter(sandbox, testsNetwork(verification.task, step));
    const run = await runTests(opened, { check, folder, cwd, user, env, allowed, disk, signal });
    const again = await container.stop();
    return await judgeTests(async () => again, { check, run, uid: user.uid });
  };
  const { memoryLimitBytes } = container;
  const judged = await asAgentsFault(judge, { ...stopped, memoryLimitBytes, isAgents: true, signal });
  return { mode: "shared", findings, ...judged };
}

async function putBack(
  sandbox: Sandbox,
  { task, step, imageId, container, stopped, changes }: SharedVerification,
  places: SharedPlaces,
): Promise<string[]> {
  await using image = await openImageFiles(stopped, imageId);
  const originals = new Originals(image, {
    copies: givenCopies(task, step, container.cwd),
    owner: container.user,
  });
  return await neutralise(sandbox, { changes, originals, places });
}

/** Those of the environment, and those of the steps up to this one. */
function givenCopies(
  { environment, steps }: Task,
  step: TaskStep,
  cwd: string,
): Pick<TaskCopy, "source" | "target" | "exclude">[] {
  const inCwd = (source: string | null) => (source === null ? [] : [{ source, target: cwd, exclude: [] }]);
  const ofSteps = steps.slice(0, steps.indexOf(step) + 1).flatMap(({ files }) => inCwd(files));
  return [...inCwd(environment.files), ...(environment.copies ?? []), ...ofSteps];
}

/** The PATH that the image and the task's author set, without directories that belong to the agent. */
async function pathOf(
  engine: Pick<Engine, "inspectImage">,
  { task, imageId, container }: SharedVerification,
): Promise<string> {
  const image = await engine.inspectImage(imageId);
  const ofImage = image?.env.find((line) => line.startsWith("PATH="))?.slice("PATH=".length);
  const path = task.environment.env.PATH ?? ofImage ?? DEFAULT_PATH;
  const trusted = trustedDirectories(path, container);
  return trusted.length === 0 ? DEFAULT_PATH : trusted.join(":");
}

function sharedPlaces({ step, container: { cwd } }: SharedVerification, path: string): SharedPlaces {
  const artifacts = step.artifacts.map(({ source }) => posix.resolve(cwd, source));
  return { cwd, artifacts, programs: [...new Set([...path.split(":"), ...DEFAULT_PATH.split(":")])] };
}
