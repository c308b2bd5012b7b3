import type { Sandbox } from "../../../sandbox/index.js";
import { type Attack, NOT_POSSIBLE } from "./attack.js";
import { ARTIFACTS_VARIABLE, attackScript } from "./attack-script.js";

export interface PlantOptions {
  /** Working directory of the agent. */
  cwd: string;
  /** Absolute paths in the container that the verifier gets. */
  artifacts: readonly string[];
  signal?: AbortSignal | undefined;
}

/** Result of planting an attack in the agent's container. Only the verifier can show whether it brings a reward. */
export interface PlantedAttack {
  name: string;
  /** `failed`: its script ended in another way than it should, or took too long. */
  outcome: "planted" | "not-possible" | "failed";
  /** Output of the script. It comes from a container and has to be cleaned before it is shown. Null for none. */
  message: string | null;
}

const SCRIPT_TIMEOUT_MS = 120_000;
const MESSAGE_MAX_BYTES = 2000;

/** Puts an attack into an agent's container. Errors: those of the sandbox, and the signal's reason. */
export async function plantAttack(
  sandbox: Pick<Sandbox, "exec">,
  attack: Attack,
  { cwd, artifacts, signal }: PlantOptions,
): Promise<PlantedAttack> {
  const { exitCode, output } = await sandbox.exec(["/bin/sh", "-c", attackScript(attack)], {
    cwd,
    env: { [ARTIFACTS_VARIABLE]: artifacts.join("\n") },
    timeoutMs: SCRIPT_TIMEOUT_MS,
    maxOutputBytes: MESSAGE_MAX_BYTES,
    signal,
  });
  const said = output.trim();
  return { name: attack.name, outcome: outcomeOf(exitCode), message: said === "" ? null : said };
}

function outcomeOf(exitCode: number): PlantedAttack["outcome"] {
  if (exitCode === 0) return "planted";
  return exitCode === NOT_POSSIBLE ? "not-possible" : "failed";
}
