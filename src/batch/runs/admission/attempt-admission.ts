import { beforeAbort } from "../../../lib/time/before-abort.js";
import { type Clock, systemClock } from "../../../lib/time/clock.js";
import type { Engine } from "../../../sandbox/index.js";
import { checkedLimits } from "../../../sandbox/index.js";
import type { Task, TaskEnvironment } from "../../tasks/task.js";
import type { ContainerLimits } from "../attempt/attempt.js";
import type { AttemptResult } from "../results/attempt-result.js";
import {
  Admission,
  measureMachine,
  type Need,
  requireRoom,
  type Shortage,
  standardRules,
} from "./admission.js";
import { EngineGate, type EngineGateLimits } from "./engine-gate.js";

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
  const { maxAtOnce, clock = systemClock, gateLimits: limits, onWait } = options;
  const random = Math.random;
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
  const gate = new EngineGate({
    ...{ clock, random, limits },
    // The engine answers this question each time anew.
    probe: async () => void (await engine.health()),
    onPause: ({ cause: message, ...pause }) => wait({ kind: "engine", ...pause, message }),
    onResume: () => goOn("engine"),
  });
  const models = new ModelGate({
    ...{ clock, random },
    onPause: ({ cause: message, ...pause }) => wait({ kind: "model", ...pause, message }),
    onResume: () => goOn("model"),
  });
  const admission = new Admission({
    clock,
    rules: { ...standardRules, maxAtOnce },
    measure: async () => await measureMachine(engine),
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
        const place = await admission.enter(needOfTask(task, limits), signal);
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
    tasks.map((task) => ({ task: task.name, need: needOfTask(task, limits) })),
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
export function needOfTask({ environment, steps }: Task, limits: ContainerLimits = {}): Need {
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

export interface ModelGateOptions {
  clock: Clock;
  /** Returns a number from 0 to less than 1. */
  random: () => number;
  /** Called when nothing starts any more, and with each next try. */
  onPause?: ((pause: ModelPause) => void) | undefined;
  /** Called when the endpoint has answered again. */
  onResume?: (() => void) | undefined;
}

/** Why nothing starts at the moment. */
export interface ModelPause {
  /** How many attempts in a row failed because of the endpoint. */
  failed: number;
  /** Time until one attempt tries the endpoint again; 0 if one is trying it now. */
  forMs: number;
  /** Message of the last failure. */
  cause: string;
}

/** What an ended attempt shows about the endpoint. "unknown": it never asked the endpoint, or was cancelled. */
export type ModelOutcome = { kind: "answered" | "unknown" } | { kind: "failed"; cause: string };

/** Leave to start one attempt. Its end has to be told. */
export interface ModelTurn {
  ended(outcome: ModelOutcome): void;
}

/** This many failures in a row are no accident of single attempts. */
const FAILED_IN_A_ROW = 5;
const FIRST_PAUSE_MS = 30_000;
const LONGEST_PAUSE_MS = 300_000;

/**
 * Keeps attempts from a model's endpoint that fails for all of them, as with a wrong key or in an outage: they would use up
 * their tries within seconds. After a pause one attempt starts, and its end decides whether the others may. There is
 * no cheaper way to ask: at many endpoints the requests that cost nothing do not need the key either.
 */
export class ModelGate {
  readonly #options: ModelGateOptions;
  #failed = 0;
  #pause: { endsAt: number; number: number; cause: string } | null = null;
  #trial: Trial | null = null;

  constructor(options: ModelGateOptions) {
    this.#options = options;
  }

  /** Resolves when the next attempt may start. An abort ends the wait. */
  async turn(signal: AbortSignal): Promise<ModelTurn> {
    const { clock } = this.#options;
    for (let pause = this.#pause; pause !== null; pause = this.#pause) {
      signal.throwIfAborted();
      const waitMs = pause.endsAt - clock.now();
      if (this.#trial !== null) await beforeAbort(this.#trial.ended, signal);
      else if (waitMs > 0) await clock.sleep(waitMs, signal);
      else return this.#startTrial(pause.cause);
    }
    return {
      ended: (outcome) => {
        // Attempts that started before a pause say nothing about the time since.
        if (this.#pause === null) this.#note(outcome);
      },
    };
  }

  #startTrial(cause: string): ModelTurn {
    let end: () => void = () => undefined;
    const trial: Trial = {
      ended: new Promise((resolve) => {
        end = resolve;
      }),
    };
    this.#trial = trial;
    this.#options.onPause?.({ failed: this.#failed, forMs: 0, cause });
    return {
      ended: (outcome) => {
        if (this.#trial !== trial) return;
        this.#trial = null;
        this.#note(outcome);
        end();
      },
    };
  }

  #note(outcome: ModelOutcome): void {
    if (outcome.kind === "failed") this.#fail(outcome.cause);
    if (outcome.kind === "answered") this.#resume();
  }

  #fail(cause: string): void {
    const { clock, random, onPause } = this.#options;
    this.#failed++;
    if (this.#failed < FAILED_IN_A_ROW) return;
    const number = (this.#pause?.number ?? 0) + 1;
    const wholeMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (number - 1));
    // Several runs against one endpoint do not all come back at the same time.
    const forMs = Math.round(wholeMs * (0.75 + random() / 4));
    this.#pause = { endsAt: clock.now() + forMs, number, cause };
    onPause?.({ failed: this.#failed, forMs, cause });
  }

  #resume(): void {
    this.#failed = 0;
    if (this.#pause === null) return;
    this.#pause = null;
    this.#options.onResume?.();
  }
}

/** One attempt that tries the endpoint, while the others wait for its end. */
interface Trial {
  ended: Promise<void>;
}
