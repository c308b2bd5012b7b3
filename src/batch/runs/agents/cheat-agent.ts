import { appendFile } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Attack } from "../attacks/attack.js";
import { attackBatches, findAttack } from "../attacks/attack-library.js";
import { type PlantedAttack, plantAttack } from "../attacks/plant-attack.js";
import type { AgentOutcome, AgentWork, AttemptAgent } from "./attempt-agent.js";
import { noUsage } from "./no-usage.js";

interface CheatOptions {
  attacks: readonly Attack[];
  /** Part of the agent's name. Default: none. */
  name?: string | undefined;
  /** Called once for each attack and step. */
  onPlanted?: ((planted: PlantedAttack) => void) | undefined;
}

/**
 * `cheat`: as many attacks as can be tried together in one container; `cheat:NAME`: that one. Error: `usage.invalid`
 * for a name that no attack has.
 */
export function cheatAgentNamed(name: string): AttemptAgent {
  const [, attack] = /^cheat:(.*)$/s.exec(name) ?? [];
  return attack === undefined
    ? cheatAgent({ attacks: attackBatches()[0] ?? [] })
    : cheatAgent({ attacks: [findAttack(attack)], name: attack });
}

/**
 * Solves nothing, and tries to be graded as if it had. Where attacks replace the same things, the last one stands:
 * `attackBatches` says which can be tried together.
 */
export function cheatAgent({ attacks, name, onPlanted }: CheatOptions): AttemptAgent {
  return {
    name: name === undefined ? "cheat" : `cheat:${name}`,
    model: null,
    async run(work) {
      const tried: PlantedAttack[] = [];
      for (const attack of attacks) {
        const planted = await plant(work, attack);
        tried.push(planted);
        onPlanted?.(planted);
      }
      return outcomeOf(tried);
    },
  };
}

const CHEAT_OUTPUT = "agent-output.txt";

async function plant(work: AgentWork, attack: Attack): Promise<PlantedAttack> {
  const { sandbox, cwd, step, signal, folder } = work;
  const declared = step.artifacts.map(({ source }) => posix.resolve(cwd, source));
  // In the shared mode the verifier gets everything, so that an attack may as well begin where the work is.
  const artifacts = declared.length > 0 ? declared : [cwd];
  const planted = await plantAttack(sandbox, attack, { cwd, artifacts, signal });
  const line = `${planted.outcome} ${planted.name}${planted.message === null ? "" : `: ${JSON.stringify(planted.message)}`}`;
  await appendFile(join(folder, CHEAT_OUTPUT), `${line}\n`);
  return planted;
}

function outcomeOf(tried: readonly PlantedAttack[]): AgentOutcome {
  const count = (wanted: PlantedAttack["outcome"]) =>
    tried.filter(({ outcome }) => outcome === wanted).length;
  return {
    ending: count("failed") > 0 ? "failed" : "completed",
    message: `attacks: ${count("planted")} in place, ${count("not-possible")} not possible here, ${count("failed")} failed`,
    usage: noUsage,
    files: { agentOutput: CHEAT_OUTPUT },
  };
}
