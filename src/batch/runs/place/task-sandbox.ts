import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import type {
  EgressAttempt,
  Engine,
  LoadedPolicy,
  NetworkScope,
  PatternParse,
  Policy,
  Sandbox,
} from "../../../sandbox/index.js";
import {
  describeNetwork,
  loadPolicy,
  missingImage,
  normalPattern,
  PUBLIC,
  planOf,
  startSandbox,
} from "../../../sandbox/index.js";
import type { Task, TaskEnvironment, TaskNetwork, TaskStep } from "../../tasks/task.js";
import type { AttemptLimits, ContainerLimits } from "../attempt/attempt.js";
import { type ImageUser, imageUser } from "./image-user.js";
import type { RecordedPlace } from "./never-started.js";

/** Memory limit as a multiple of what a task asks for; above it the kernel ends programs. */
const DEFAULT_MEMORY_HEADROOM = 3;
/** Compilers and test runners of tasks start more processes than an agent's commands usually do. */
const TASK_PIDS = 4096;
const MIN_MEMORY_MB = 64;
const MAX_SHM_MB = 128;

/** Settings that the containers of an attempt have in common. */
export interface TaskPlace {
  engine: Engine;
  environment: Environment;
  runtime?: string | undefined;
  limits?: AttemptLimits | undefined;
  signal?: AbortSignal | undefined;
  /** Receives each attempt of a program to reach something; only with an allow-list. */
  onEgress?: ((attempt: EgressAttempt) => void) | undefined;
}

export interface TaskContainer {
  environment: TaskEnvironment;
  imageId: string;
  /** Null for the image's own. */
  user: string | null;
  network: TaskNetwork;
  env: Readonly<Record<string, string>>;
}

export interface OpenTaskSandbox {
  sandbox: Sandbox;
  /** Directory in which commands start. */
  cwd: string;
  user: ImageUser;
  memory: { requestedBytes: number | null; limitBytes: number };
}

/**
 * Opens a container of a task's image in which nothing has run yet. It has no files of the host, and outlives its
 * processes until the sandbox is closed. Errors: those of `Sandbox.create`; `policy.not-enforced` for an
 * allow-list of hosts.
 */
export async function openTaskSandbox(place: TaskPlace, container: TaskContainer): Promise<OpenTaskSandbox> {
  const { engine, signal } = place;
  const image = await engine.inspectImage(container.imageId);
  if (image === null) throw missingImage(container.imageId);
  const user = await imageUser(recordedPlace(place), { image, user: container.user });
  const cwd = container.environment.workdir ?? (image.workingDir === "" ? "/" : image.workingDir);
  const policy = await taskPolicy(container, { user, limits: place.limits });
  const sandbox = await startSandbox(
    {
      policy,
      workspace: null,
      image: container.imageId,
      runtime: place.runtime,
      addDirs: [],
      writableRoots: [],
      env: container.env,
      leaseSeconds: 60,
      keep: false,
      environment: place.environment,
      outlivesProcesses: true,
      workingDirectory: cwd,
    },
    { engine, signal, inspectedImage: image, onEgress: place.onEgress },
  );
  const { memoryMb } = container.environment.limits;
  return {
    sandbox,
    cwd,
    user,
    memory: {
      requestedBytes: memoryMb === null ? null : memoryMb * 1024 * 1024,
      limitBytes: planOf(sandbox).limits.memoryBytes,
    },
  };
}

export function recordedPlace({ engine, environment }: TaskPlace): RecordedPlace {
  return { engine, brigHome: environment.brigHome };
}

/** Full access to the container and nothing of the host, within the limits of the task. */
async function taskPolicy(
  { environment, network }: TaskContainer,
  { user, limits: given = {} }: { user: ImageUser; limits?: ContainerLimits | undefined },
): Promise<LoadedPolicy> {
  const base = await loadPolicy("danger-full-access");
  const { cpus, memoryMb: requestedMb } = environment.limits;
  const { memoryHeadroom = DEFAULT_MEMORY_HEADROOM } = given;
  const usualMb =
    requestedMb === null
      ? base.policy.limits.memoryMb
      : Math.max(MIN_MEMORY_MB, Math.ceil(requestedMb * memoryHeadroom));
  const memoryMb = given.memoryMb ?? usualMb;
  const policy: Policy = {
    ...base.policy,
    network: networkScope(network),
    user: `${user.uid}:${user.gid}`,
    home: user.home,
    limits: {
      ...base.policy.limits,
      memoryMb,
      cpus: given.cpus ?? cpus ?? base.policy.limits.cpus,
      pids: given.pids ?? TASK_PIDS,
      shmMb: Math.max(1, Math.min(MAX_SHM_MB, Math.floor(memoryMb / 4))),
    },
  };
  return { ...base, name: "task", policy };
}

const NOTHING: TaskNetwork = { mode: "allowlist", allowedHosts: [] };

/** Networks of the phases of one container. */
interface Phases {
  /** Null if nothing runs before the first of the others. */
  setup: TaskNetwork | null;
  /** Networks of agents, and of tests that run in the same container. */
  others: readonly TaskNetwork[];
}

/** A container that cannot be had, since one network interface would be there for all of its phases. */
export interface MixedNetworks {
  wide: TaskNetwork["mode"];
  narrow: TaskNetwork["mode"];
}

/**
 * The network of one container, which may be another one in each of its phases. A container whose phases differ has an
 * allow-list, with nothing on it until the first is entered.
 */
export class PhaseNetworks {
  /** Network that the container is opened with, and has whenever it is started again. */
  readonly opened: TaskNetwork;
  /** Null if `enter` can give each phase its network. */
  readonly mixed: MixedNetworks | null;
  readonly #changes: boolean;

  constructor({ setup, others }: Phases) {
    const all = setup === null ? others : [setup, ...others];
    const [first = NOTHING] = all;
    this.#changes = all.some((network) => !isSame(network, first));
    this.opened = this.#changes ? NOTHING : first;
    const wide = this.#changes && others.some(({ mode }) => mode === "public");
    const narrow = all.find(({ mode }) => mode !== "public");
    this.mixed = wide && narrow !== undefined ? { wide: "public", narrow: narrow.mode } : null;
  }

  /** Gives what runs in the container the network of a phase, and cuts connections that it does not allow. */
  enter(sandbox: Sandbox, network: TaskNetwork): void {
    if (this.#changes) sandbox.setNetwork(describeNetwork(listed(network)));
  }
}

/** Networks of the container that the agent works in. */
export function agentNetworks(task: Task): PhaseNetworks {
  const { environment, steps } = task;
  const tests = steps
    .filter(({ verifier }) => verifier.mode === "shared")
    .map((step) => testsNetwork(task, step));
  return new PhaseNetworks({
    setup: steps.some((step) => hasSetup(task, step)) ? environment.network : null,
    others: [...steps.map((step) => agentNetwork(task, step)), ...tests],
  });
}

/** Networks of the container of a separate verifier. */
export function verifierNetworks(task: Task, step: TaskStep): PhaseNetworks {
  const environment = verifierEnvironment(task, step);
  return new PhaseNetworks({
    setup: environment.healthcheck === null ? null : environment.network,
    others: [testsNetwork(task, step)],
  });
}

/** The networks of a fresh container, prepared like the agent's, in which the tests of a step run once more. */
export function confirmationNetworks(task: Task, step: TaskStep): PhaseNetworks {
  const { environment, steps } = task;
  const later = steps.slice(1, steps.indexOf(step) + 1).filter(runsPrograms);
  return new PhaseNetworks({
    setup: steps.some((one) => hasSetup(task, one)) ? environment.network : null,
    others: [...later.map((one) => setupNetwork(task, one)), testsNetwork(task, step)],
  });
}

export function agentNetwork({ environment }: Task, { agent }: TaskStep): TaskNetwork {
  return agent.network ?? environment.network;
}

/**
 * Network while a step is set up. From the second step on it is no wider than the agent's, since the setup may start
 * programs that an agent has put into the container.
 */
export function setupNetwork(task: Task, step: TaskStep): TaskNetwork {
  return step === task.steps[0] ? task.environment.network : agentNetwork(task, step);
}

export function testsNetwork(task: Task, step: TaskStep): TaskNetwork {
  return step.verifier.network ?? verifierEnvironment(task, step).network;
}

export function verifierEnvironment({ environment }: Task, { verifier }: TaskStep): TaskEnvironment {
  return verifier.environment ?? environment;
}

/** Whether programs run before the agent of the first step. */
function hasSetup({ environment, steps }: Task, step: TaskStep): boolean {
  if (step !== steps[0]) return false;
  return environment.healthcheck !== null || runsPrograms(step);
}

/** Whether it runs any before the agent. */
function runsPrograms({ healthcheck, setupScript }: TaskStep): boolean {
  return healthcheck !== null || setupScript !== null;
}

/** A container whose network changes has no interface, so a public network is the public hosts that the proxy reaches. */
function listed(network: TaskNetwork): NetworkScope {
  const scope = networkScope(network);
  return scope.kind === "full" ? { kind: "allowlist", hosts: [PUBLIC] } : scope;
}

function isSame(one: TaskNetwork, other: TaskNetwork): boolean {
  const hosts = ({ allowedHosts }: TaskNetwork) => allowedHosts.toSorted().join();
  return one.mode === other.mode && hosts(one) === hosts(other);
}

/** A task's network as a policy has it. Error: `usage.invalid` for a host that brig cannot tell for certain. */
export function networkScope({ mode, allowedHosts }: TaskNetwork): NetworkScope {
  if (mode === "public") return { kind: "full" };
  if (mode === "no-network") return { kind: "none" };
  return { kind: "allowlist", hosts: allowedHosts.map(allowedPattern) };
}

/** The hosts of a task have no ports, and its IPv6 addresses no brackets. */
export function taskPattern(host: string): PatternParse {
  return normalPattern(host.includes(":") ? `[${host}]` : host);
}

function allowedPattern(host: string): string {
  const pattern = taskPattern(host);
  if (pattern.kind === "parsed") return pattern.text;
  throw new BrigError(`the task's allowed host cannot be used: ${pattern.reason}`, {
    code: "usage.invalid",
    hint: "correct allowed_hosts of the task",
  });
}
