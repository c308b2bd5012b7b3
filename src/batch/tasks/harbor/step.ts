import { posix } from "node:path";
import { networkOf } from "../network.js";
import { type FaultPlace, shown, type TaskNotes } from "../notes.js";
import type { TaskArtifact, TaskCheck, TaskPhase, TaskSolution, TaskStep, TaskVerifier } from "../task.js";
import { filledVariables } from "../values.js";
import {
  definesImage,
  type HarborEnvironment,
  type HarborReading,
  healthcheckOf,
  readEnvironment,
  TASK_FILE,
} from "./environment.js";
import type {
  AgentToml,
  ArtifactsToml,
  EnvironmentToml,
  StepToml,
  TaskToml,
  VerifierToml,
} from "./schema.js";

/** The tables of task.toml that a step is made of, and where its files are. */
export interface StepSource {
  name: string | null;
  /** Relative to the task, with a slash at its end; empty for the only step. */
  folder: string;
  /** The tables' place in task.toml, with a dot at its end. */
  field: string;
  agent: AgentToml;
  verifier: VerifierToml;
  mode: TaskVerifier["mode"];
  artifacts: ArtifactsToml;
  minReward: StepToml["min_reward"];
  healthcheck: StepToml["healthcheck"];
}

export interface StepSurroundings {
  toml: TaskToml;
  main: HarborEnvironment;
  reading: HarborReading;
}

const VERIFIER_TIMEOUT_SEC = 600;
const SCRIPT = "test.sh";

/** The only step of a task, or the steps in `steps/`. What a step does not say is what the task says. */
export function stepSources(toml: TaskToml): StepSource[] {
  const whole = { agent: toml.agent, verifier: toml.verifier, artifacts: toml.artifacts };
  const modeOfTask = modeOf(toml.verifier);
  if (toml.steps === undefined || toml.steps.length === 0) {
    const only = { name: null, folder: "", field: "", minReward: undefined, healthcheck: undefined };
    return [{ ...whole, ...only, mode: modeOfTask ?? "shared" }];
  }
  return toml.steps.map((step, index) => ({
    name: step.name,
    folder: `steps/${step.name}/`,
    field: `steps[${index}].`,
    agent: { ...whole.agent, ...step.agent },
    verifier: { ...whole.verifier, ...step.verifier, env: { ...whole.verifier.env, ...step.verifier.env } },
    // A step's own environment says more than the mode that the task gives to all steps.
    mode: modeOf(step.verifier) ?? modeOfTask ?? "shared",
    artifacts: [...whole.artifacts, ...step.artifacts],
    minReward: step.min_reward,
    healthcheck: step.healthcheck,
  }));
}

function modeOf({ environment_mode: mode, environment }: VerifierToml): TaskVerifier["mode"] | undefined {
  return mode ?? (environment === undefined ? undefined : "separate");
}

/** Null, with faults in the notes, for a step that cannot be run. */
export function readStep(source: StepSource, { toml, main, reading }: StepSurroundings): TaskStep | null {
  const { tree, notes } = reading;
  const { folder, field } = source;
  const instruction = tree.text(`${folder}instruction.md`, notes);
  if (instruction?.trim() === "") notes.refuse("is empty", { file: `${folder}instruction.md` });
  const agent = phaseOf(source.agent, { field: `${field}agent`, user: main.user }, reading);
  const verifier = readVerifier(source, { toml, main, reading });
  if (instruction === null || verifier === null) return null;
  return {
    name: source.name,
    instruction,
    agent: { ...agent, timeoutSec: source.agent.timeout_sec ?? null },
    files: folder !== "" && tree.hasDirectory(`${folder}workdir`) ? tree.absolute(`${folder}workdir`) : null,
    setupScript: folder !== "" && tree.hasFile(`${folder}workdir/setup.sh`) ? "setup.sh" : null,
    healthcheck: healthcheckOf(source.healthcheck),
    solution: solutionOf(folder, toml, reading),
    artifacts: artifactsOf(source, reading),
    verifier,
    minRewards:
      typeof source.minReward === "number" ? { reward: source.minReward } : (source.minReward ?? null),
  };
}

function phaseOf(
  toml: AgentToml | VerifierToml,
  { field, user }: { field: string; user: string | null },
  { notes }: HarborReading,
): Omit<TaskPhase, "timeoutSec"> {
  return {
    user: toml.user === undefined ? user : String(toml.user),
    network: networkOf(toml, notes, { file: TASK_FILE, field }),
  };
}

function solutionOf(
  folder: string,
  toml: TaskToml,
  { tree, notes, variables }: HarborReading,
): TaskSolution | null {
  const directory = `${folder}solution`;
  if (!tree.hasFile(`${directory}/solve.sh`)) return null;
  const place = { file: TASK_FILE, field: "solution.env" };
  const env = filledVariables(toml.solution.env, variables, { notes, place });
  return { kind: "script", directory: tree.absolute(directory), script: "solve.sh", env };
}

function artifactsOf({ artifacts, field }: StepSource, { notes }: HarborReading): TaskArtifact[] {
  const place = { file: TASK_FILE, field: `${field}artifacts` };
  return artifacts
    .map((one) => (typeof one === "string" ? { source: one } : one))
    .flatMap((one) => {
      if ("service" in one && one.service !== undefined && one.service !== "main")
        notes.refuse(`is of the service ${JSON.stringify(one.service)}, and brig runs only "main"`, place);
      return artifactOf(one, notes, place) ?? [];
    });
}

function readVerifier(source: StepSource, surroundings: StepSurroundings): TaskVerifier | null {
  const { verifier: toml, field } = source;
  const { main, reading } = surroundings;
  const { notes, variables } = reading;
  const table = `${field}verifier`;
  const { mode } = source;
  if (toml.collect !== undefined && toml.collect.length > 0)
    notes.refuse("is not supported: the verifier would lack what it collects", {
      file: TASK_FILE,
      field: `${table}.collect`,
    });
  if (toml.keep_services === true && mode === "separate")
    notes.refuse("is for tests in the agent's container: a separate verifier has no program of the agent", {
      file: TASK_FILE,
      field: `${table}.keep_services`,
    });
  const own = mode === "separate" ? verifierEnvironment(source, surroundings) : null;
  const check = checkOf(source, { hasTests: own?.hasTests === true, reading });
  if (check === null || own?.environment === null) return null;
  return {
    mode,
    ...(toml.keep_services === true && { keepsServices: true }),
    timeoutSec: toml.timeout_sec ?? VERIFIER_TIMEOUT_SEC,
    ...phaseOf(toml, { field: table, user: (own?.environment ?? main).user }, reading),
    env: filledVariables(toml.env, variables, { notes, place: { file: TASK_FILE, field: `${table}.env` } }),
    environment: own === null || own.isSame ? null : own.environment.environment,
    check,
  };
}

interface OwnEnvironment {
  environment: HarborEnvironment | null;
  /** The task's own, unchanged. */
  isSame: boolean;
  /** Whether its image contains the tests. */
  hasTests: boolean;
}

/**
 * The environment of a separate verifier: `[verifier.environment]`, else a copy of `[environment]`. The directory of
 * the tests may have a Dockerfile, whose image then contains them.
 */
function verifierEnvironment(
  { verifier, folder, field }: StepSource,
  { toml, main, reading }: StepSurroundings,
): OwnEnvironment {
  const { tree, notes } = reading;
  const directories = testsDirectories(folder, reading);
  const [first = "tests"] = directories;
  const directory = directories.find((one) => definesImage(one, reading)) ?? first;
  const settings = verifier.environment;
  const table = settings === undefined ? "environment" : `${field}verifier.environment`;
  const isBuilt = definesImage(directory, reading);
  if (isBuilt && directory !== first)
    notes.refuse(`would be missing in the image of the verifier, which is built from ${directory}`, {
      file: first,
      hint: `give ${first} a Dockerfile of its own`,
    });
  if (isBuilt || settings?.docker_image !== undefined) {
    // The image of the agent is not the one that is made from the tests.
    const base: EnvironmentToml = settings ?? { ...toml.environment, docker_image: undefined };
    const own = readEnvironment(base, { directory, table }, reading);
    const environment = own === null ? null : { ...own, environment: { ...own.environment, files: null } };
    const isUploaded = !isBuilt && directories.some((one) => tree.hasFile(`${one}/${SCRIPT}`));
    return { environment, isSame: false, hasTests: !isUploaded };
  }
  if (settings === undefined) return { environment: main, isSame: true, hasTests: false };
  // Only the settings differ; the image is the task's own.
  const { docker_image, build_timeout_sec } = toml.environment;
  const own = { ...settings, docker_image, build_timeout_sec };
  const environment = readEnvironment(own, { directory: "environment", table }, reading);
  return { environment, isSame: false, hasTests: false };
}

/** The directories of tests that exist: a step's own, whose files replace those of all steps of the same names, comes first. */
function testsDirectories(folder: string, { tree }: HarborReading): string[] {
  return [...new Set([`${folder}tests`, "tests"])].filter((directory) => tree.hasDirectory(directory));
}

function checkOf(
  { folder }: StepSource,
  { hasTests, reading }: { hasTests: boolean; reading: HarborReading },
): TaskCheck | null {
  const { tree, notes } = reading;
  if (hasTests) return { kind: "reward-files", directory: null, script: SCRIPT };
  const [directory = "tests", base] = testsDirectories(folder, reading);
  const has = (name: string) =>
    [directory, base].some((one) => one !== undefined && tree.hasFile(`${one}/${name}`));
  if (has(SCRIPT)) {
    const check = { kind: "reward-files", directory: tree.absolute(directory), script: SCRIPT } as const;
    return base === undefined ? check : { ...check, base: tree.absolute(base) };
  }
  notes.refuse(has("test.bat") ? "is missing, and brig cannot run test.bat" : "is missing", {
    file: `${directory}/${SCRIPT}`,
    hint: "tests/test.sh checks the result and writes the reward to /logs/verifier/reward.txt",
  });
  return null;
}

interface ArtifactSettings {
  source: string;
  destination?: string | undefined;
  exclude?: readonly string[] | undefined;
}

/** The manifest of the artifacts lies beside them. */
const RESERVED = "manifest.json";

/** Null, with a fault, for paths that lead elsewhere than they seem to. */
function artifactOf(
  { source, destination, exclude = [] }: ArtifactSettings,
  notes: TaskNotes,
  place: FaultPlace,
): TaskArtifact | null {
  const refuse = (problem: string) => {
    notes.refuse(problem, place);
    return null;
  };
  if (!isPlainPath(source)) return refuse(`the source ${shown(source)} must be a path without ".."`);
  if (destination === undefined) return { source, destination: null, exclude };
  if (!isPlainPath(destination) || posix.isAbsolute(destination))
    return refuse(`the destination ${shown(destination)} must be a relative path without ".."`);
  if (posix.normalize(destination) === RESERVED) return refuse(`the destination ${RESERVED} is reserved`);
  return { source, destination, exclude };
}

/** Whether a path is not empty, has no step upwards and no character that cannot be in a name. */
function isPlainPath(path: string): boolean {
  return path !== "" && !path.split("/").includes("..") && !/\p{Cc}/u.test(path);
}
