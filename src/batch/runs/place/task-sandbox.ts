import type { Environment } from "../../../lib/env.js";
import type { EgressAttempt, Engine, LoadedPolicy, Policy, Sandbox } from "../../../sandbox/index.js";
import {
  loadPolicy,
  missingImage,
  openedSandboxOf,
  openSandbox,
  sandboxFrom,
} from "../../../sandbox/index.js";
import type { TaskEnvironment, TaskNetwork } from "../../tasks/task.js";
import type { ContainerLimits } from "../attempt/attempt.js";
import { type ImageUser, imageUser } from "./image-user.js";
import { networkScope } from "./network-scope.js";
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
  limits?: ContainerLimits | undefined;
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
  const opened = await openSandbox(
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
  const sandbox = sandboxFrom(opened);
  const { memoryMb } = container.environment.limits;
  return {
    sandbox,
    cwd,
    user,
    memory: {
      requestedBytes: memoryMb === null ? null : memoryMb * 1024 * 1024,
      limitBytes: openedSandboxOf(sandbox).plan.limits.memoryBytes,
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
