import type { Clock } from "../../../lib/time/clock.js";
import type { Engine } from "../../../sandbox/index.js";
import { checkedLimits } from "../../../sandbox/index.js";
import type { Task, TaskEnvironment } from "../../tasks/task.js";
import type { ContainerLimits } from "../attempt/attempt.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { requireRoom } from "./admission.js";
import type { Need, Shortage } from "./decide.js";
import type { EngineGateLimits } from "./engine-gate.js";
import { measureMachine } from "./machine.js";
import type { ModelOutcome } from "./model-gate.js";
import { openAdmission, openEngineGate, openModelGate } from "./open-admission.js";

/** Decides when the attempts of a run may start. */
export interface AttemptAdmission {
  /** Resolves when there is room for an attempt at this task with its run's limits, and the engine and the model's endpoint work. */
  enter(task: Task, signal: AbortSignal, limits?: ContainerLimits): Promise<AdmittedAttempt>;
}

export interface AdmittedAttempt {
  /** Gives its room back. Null for an attempt that ended without a result. */
  ended(result: AttemptResult | null): void;
}

/** Why nothing starts at the moment. */
export type BatchWait =
  /** The next attempt needs so much of it, and so much is left: processors, or bytes. */
  | { kind: "room"; resource: "cpus" | "memory" | "disk"; needed: number; left: number }
  /** This number of the last attempts failed because of the engine, which is asked again after `forMs`. */
  | { kind: "engine"; failed: number; outcomes: number; forMs: number; message: string | null }
  /** This number of attempts in a row failed because of the model's endpoint; one tries it again after `forMs`. 0: one does now. */
  | { kind: "model"; failed: number; forMs: number; message: string };

export interface AttemptAdmissionOptions {
  maxAtOnce: number;
  clock?: Clock | undefined;
  gateLimits?: Partial<EngineGateLimits> | undefined;
  /** Called with each new reason to wait, and with null when it is over. */
  onWait: (wait: BatchWait | null) => void;
}

/** Admission by what the engine's machine has left, and by how the last attempts ended. */
export function openAttemptAdmission(engine: Engine, options: AttemptAdmissionOptions): AttemptAdmission {
  const { maxAtOnce, clock, gateLimits, onWait } = options;
  let waitsFor: BatchWait["kind"] | null = null;
  const wait = (reason: BatchWait) => {
    waitsFor = reason.kind;
    onWait(reason);
  };
  const goOn = (kind: BatchWait["kind"]) => {
    if (waitsFor !== kind) return;
    waitsFor = null;
    onWait(null);
  };
  const gate = openEngineGate(engine, {
    clock,
    limits: gateLimits,
    onPause: ({ cause: message, ...pause }) => wait({ kind: "engine", ...pause, message }),
    onResume: () => goOn("engine"),
  });
  const models = openModelGate({
    clock,
    onPause: ({ cause: message, ...pause }) => wait({ kind: "model", ...pause, message }),
    onResume: () => goOn("model"),
  });
  const admission = openAdmission(engine, {
    maxAtOnce,
    clock,
    onWait: (shortage) => {
      const reason = waitForRoom(shortage);
      if (reason !== null) wait(reason);
    },
  });
  return {
    async enter(task, signal, limits) {
      const model = await models.turn(signal);
      try {
        await gate.turn(signal);
        const place = await admission.enter(needOf(task, limits), signal);
        goOn("room");
        return {
          ended(result) {
            place[Symbol.dispose]();
            model.ended(modelOutcome(result));
            if (result === null || result.status === "cancelled") return;
            const { failure } = result;
            gate.note({ isFault: failure?.class === "engine-gone", cause: failure?.message ?? null });
          },
        };
      } catch (error) {
        model.ended({ kind: "unknown" });
        throw error;
      }
    },
  };
}

/** Finds out from the end of an attempt whether the model's endpoint works. */
function modelOutcome(result: AttemptResult | null): ModelOutcome {
  if (result === null || result.status === "cancelled") return { kind: "unknown" };
  const { failure, usage } = result;
  if (failure?.class === "model-endpoint") return { kind: "failed", cause: failure.message };
  return { kind: usage.turns > 0 ? "answered" : "unknown" };
}

/** Error: `usage.invalid` with all tasks that ask for more than the engine's machine has, or with limits that no container can have. */
export async function requireRoomFor(
  engine: Engine,
  tasks: readonly Task[],
  limits?: ContainerLimits,
): Promise<void> {
  const { memoryMb, cpus, pids } = limits ?? {};
  checkedLimits({ memoryMb, cpus, pids });
  const machine = await measureMachine(engine);
  requireRoom(
    tasks.map((task) => ({ task: task.name, need: needOf(task, limits) })),
    machine,
  );
}

function waitForRoom(shortage: Shortage): BatchWait | null {
  // A full set of running attempts is normal and not worth a message.
  if (shortage.kind === "concurrency") return null;
  const { kind: resource, needed, left } = shortage;
  return { kind: "room", resource, needed, left };
}

const MEBIBYTE = 1024 ** 2;
/** Memory for brig, a shell and a small program, assumed where a task says nothing. */
const LEAST_MEMORY_MB = 256;
/** A task's limit for the disk says little about how much of it the attempts use, so no more than this is assumed. */
const MOST_DISK_MB = 1024;

/** The larger of what the agent's container and the verifier's need: they do not run at the same time. */
function needOf({ environment, steps }: Task, limits: ContainerLimits = {}): Need {
  const others = steps.flatMap(({ verifier }) => verifier.environment ?? []);
  const needs = [environment, ...others].map((one) => needOfContainer(one, limits));
  const most = (field: keyof Need) => Math.max(...needs.map((need) => need[field]));
  return { cpus: most("cpus"), memoryBytes: most("memoryBytes"), diskBytes: most("diskBytes") };
}

/** Programs of a task that asks for no processors share what there are. */
function needOfContainer(
  { limits: { cpus, memoryMb, storageMb } }: TaskEnvironment,
  given: ContainerLimits,
): Need {
  return {
    cpus: given.cpus ?? cpus ?? 0,
    memoryBytes: (given.memoryMb ?? memoryMb ?? LEAST_MEMORY_MB) * MEBIBYTE,
    diskBytes: Math.min(storageMb ?? 0, MOST_DISK_MB) * MEBIBYTE,
  };
}
