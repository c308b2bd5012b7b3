import { AnySignal } from "../../lib/time/any-signal.js";
import type { Task } from "../tasks/task.js";
import type { AttemptAgent } from "./agents/attempt-agent.js";
import { nopAgent, oracleAgent } from "./agents/command-agent.js";
import type { Attack } from "./attacks/attack.js";
import { cheatAgent, type PlantedAttack } from "./attacks/plant-attack.js";
import { passRestsOn } from "./results/attempt-outcome.js";
import type { AttemptResult } from "./results/attempt-result.js";

/** Result of one agent's attempt. */
export interface Trial {
  agent: string;
  /** Null without a score. */
  reward: number | null;
  /** Why there is no score, or what else is to be said; null for nothing. */
  message: string | null;
  /** Paths outside of the work on which a pass in the agent's container rests. */
  restsOn: readonly string[];
}

export interface AttackTrial extends Trial {
  attack: Attack;
  /** `not-possible`: the container lacks what it needs. */
  outcome: PlantedAttack["outcome"];
}

/** Reported as progress. */
export type EndedTrial = (Trial | AttackTrial) & { task: string; done: number; of: number };

export interface TaskAudit {
  task: string;
  /** Mode of the verifier, for each step. */
  modes: ("separate" | "shared")[];
  nop: Trial;
  oracle: Trial;
  attacks: AttackTrial[];
}

export interface AuditOptions {
  attacks: readonly Attack[];
  /** Runs one attempt, as many at a time as there is room for. */
  run(order: { task: Task; agent: AttemptAgent; signal: AbortSignal }): Promise<AttemptResult>;
  /** Called when a trial has ended. */
  onTrial?: ((ended: EndedTrial) => void) | undefined;
  signal: AbortSignal;
}

/**
 * Tries the agents `nop` and `oracle`, and then each attack on its own. Where doing nothing has no score, attacks would
 * have none either, and are not tried. Errors: those of `run`; the signal's reason.
 */
export async function auditTask(task: Task, options: AuditOptions): Promise<TaskAudit> {
  const { attacks, onTrial } = options;
  const of = attacks.length + 2;
  let done = 0;
  const counted = async <T extends Trial>(trial: Promise<T>): Promise<T> => {
    const ended = await trial;
    onTrial?.({ ...ended, task: task.name, done: ++done, of });
    return ended;
  };
  const nop = await counted(tryAgent(task, nopAgent(), options));
  const solving = counted(tryOracle(task, options));
  const tried = nop.reward === null ? [] : attacks.map((attack) => counted(tryAttack(task, attack, options)));
  // All of them end before this does, so that no container is left.
  await Promise.allSettled([solving, ...tried]);
  const modes = task.steps.map(({ verifier }) => verifier.mode);
  return { task: task.name, modes, nop, oracle: await solving, attacks: await Promise.all(tried) };
}

/** Whether an attack got more than doing nothing does. */
export function succeeds({ reward }: AttackTrial, { nop }: Pick<TaskAudit, "nop">): boolean {
  return reward !== null && reward > Math.max(0, nop.reward ?? 0);
}

/** Whether no work and no attack is rewarded, and the solution is. */
export function isSound({ nop, oracle, attacks }: TaskAudit): boolean {
  const isTried = ({ outcome, reward }: AttackTrial) => outcome === "not-possible" || reward === 0;
  return nop.reward === 0 && oracle.reward !== null && oracle.reward >= 1 && attacks.every(isTried);
}

async function tryAgent(task: Task, agent: AttemptAgent, options: AuditOptions): Promise<Trial> {
  const result = await runTwice(task, agent, options);
  const { reward, failure } = result;
  const message = failure === null ? null : failure.message;
  return { agent: agent.name, reward, message, restsOn: passRestsOn(result) };
}

async function tryOracle(task: Task, options: AuditOptions): Promise<Trial> {
  if (task.steps.every(({ solution }) => solution !== null))
    return await tryAgent(task, oracleAgent(), options);
  return { agent: "oracle", reward: null, message: "the task has no solution", restsOn: [] };
}

async function tryAttack(task: Task, attack: Attack, options: AuditOptions): Promise<AttackTrial> {
  const planted: PlantedAttack[] = [];
  const impossible = new AbortController();
  const agent = cheatAgent({
    attacks: [attack],
    name: attack.name,
    onPlanted: (one) => {
      planted.push(one);
      // An attack that is not possible leaves nothing to be graded, unless there is a later step.
      if (one.outcome === "not-possible" && task.steps.length === 1) impossible.abort();
    },
  });
  using either = new AnySignal([options.signal, impossible.signal]);
  const result = await runTwice(task, agent, { ...options, signal: either.signal });
  const { reward, failure } = result;
  options.signal.throwIfAborted();
  const outcome = outcomeOf(planted);
  const said = planted.find((one) => one.outcome === outcome)?.message ?? null;
  const message = failure === null ? said : failure.message;
  return { agent: agent.name, attack, outcome, reward, message, restsOn: passRestsOn(result) };
}

/** A fault of the infrastructure is likely to be over at the second try. */
async function runTwice(
  task: Task,
  agent: AttemptAgent,
  { run, signal }: AuditOptions,
): Promise<AttemptResult> {
  const first = await run({ task, agent, signal });
  const isOver = first.failure !== null && first.failure.class !== "ungradable";
  return isOver && first.status !== "cancelled" ? await run({ task, agent, signal }) : first;
}

/** An attack that is planted in one of several steps is enough. */
function outcomeOf(planted: readonly PlantedAttack[]): PlantedAttack["outcome"] {
  const has = (outcome: PlantedAttack["outcome"]) => planted.some((one) => one.outcome === outcome);
  if (has("planted")) return "planted";
  return has("not-possible") ? "not-possible" : "failed";
}
