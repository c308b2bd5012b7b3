import type { AttackTrial, TaskAudit, Trial } from "../../../batch/index.js";
import { isSound, succeeds } from "../../../batch/index.js";
import { fitWidth } from "../../../lib/terminal/display-width.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";

/** Messages are cut to this length, because the engine's message about a failed build may be long. */
const LONGEST_MESSAGE = 300;

export function auditAsJson(audits: readonly TaskAudit[]): object {
  return {
    sound: audits.every(isSound),
    tasks: audits.map((audit) => {
      const { task, modes, nop, oracle, attacks } = audit;
      return {
        ...{ task, sound: isSound(audit), verifier: modes, nop, oracle },
        attacks: attacks.map((trial) => {
          const { attack, outcome, reward, message, restsOn } = trial;
          const isSuccess = succeeds(trial, audit);
          const remedy = isSuccess ? attack.remedy : null;
          return { name: attack.name, outcome, reward, succeeds: isSuccess, restsOn, remedy, message };
        }),
      };
    }),
  };
}

/** A line with the task's result, followed by each problem and its remedy. */
export function auditText(audit: TaskAudit): string {
  const { task, modes, nop, oracle, attacks } = audit;
  const ended = attacks.filter(({ outcome, reward }) => outcome !== "not-possible" && reward === 0).length;
  const impossible = attacks.filter(({ outcome }) => outcome === "not-possible").length;
  const successes = attacks.filter((attack) => succeeds(attack, audit));
  const lines = [
    `${task}: ${isSound(audit) ? "sound" : "NOT SOUND"}: nothing ${scoreText(nop)}, the solution ${scoreText(oracle)}, ${plural(ended, "attack")} 0, ${successes.length} more than nothing, ${impossible} not possible here`,
    ...nopLines(nop),
    ...oracleLines(oracle),
    ...successes.flatMap(attackLines),
    ...attacks.filter(hasNoScore).map((trial) => `  ${trial.agent} has no score${because(trial)}`),
  ];
  if (modes.includes("shared") && successes.length > 0)
    lines.push("  its tests run in the agent's container (shared), where not every attack can be kept out");
  return lines.map((line) => `${neutraliseLine(line)}\n`).join("");
}

function nopLines(nop: Trial): string[] {
  if (nop.reward === 0) return [];
  if (nop.reward === null)
    return [`  no attack was tried, because doing nothing has no score${because(nop)}`];
  return ["  doing nothing is rewarded; let the tests fail unless the task's work was done"];
}

function oracleLines(oracle: Trial): string[] {
  if (oracle.reward !== null && oracle.reward >= 1) return [];
  if (oracle.reward === null) return [`  the solution has no score${because(oracle)}`];
  return [
    "  the solution does not pass; run it with brig batch --agent oracle, and read its test-output.txt",
  ];
}

function attackLines({ attack, reward, restsOn }: AttackTrial): string[] {
  return [
    `  ${attack.name} scores ${reward}. ${attack.tries}`,
    ...(restsOn.length === 0
      ? []
      : [`    Its score rests on ${fitWidth(restsOn.join(", "), LONGEST_MESSAGE)}.`]),
    `    ${attack.remedy}`,
  ];
}

function hasNoScore({ outcome, reward }: AttackTrial): boolean {
  return outcome !== "not-possible" && reward === null;
}

function because({ message }: Trial): string {
  return message === null ? "" : `: ${fitWidth(neutraliseLine(message), LONGEST_MESSAGE)}`;
}

function scoreText({ reward }: Trial): string {
  return reward === null ? "has no score" : `scores ${Number(reward.toFixed(3))}`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? " scores" : "s score"}`;
}
