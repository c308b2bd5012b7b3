import { appendFile } from "node:fs/promises";
import { join, posix } from "node:path";
import type { Sandbox } from "../../../sandbox/index.js";
import { type AgentOutcome, type AgentWork, type AttemptAgent, noUsage } from "../agents/attempt-agent.js";
import { type Attack, NOT_POSSIBLE } from "./attack.js";
import { attackBatches, findAttack } from "./attack-library.js";

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

/** Newline-separated absolute paths of what the verifier gets, in the environment of a script. */
const ARTIFACTS_VARIABLE = "ARTIFACTS";

/** The directory that an attack keeps its own files in. */
function attackDirectory({ name }: Pick<Attack, "name">): string {
  return `/var/tmp/attack-${name}`;
}

/** The whole script of an attack. */
export function attackScript(attack: Attack): string {
  return `STATE=${attackDirectory(attack)}\n${prelude}\n${attack.script}`;
}

/**
 * `$FORGE` is a program that writes rewards, and goes on doing so for a minute, but only where tests are, so that a
 * reward proves that the verifier ran it. `infect FILE PROGRAM` makes source code run a program.
 */
const prelude = String.raw`
umask 022
FORGE=$STATE/forge
mkdir -p "$STATE" && chmod 1777 "$STATE"

not_possible() { echo "$1" >&2; exit ${NOT_POSSIBLE}; }
has() { command -v "$1" > /dev/null 2>&1; }
need() { has "$1" || not_possible "there is no $1"; }

# Programs of the verifier may run this again and again, also by way of another attack.
cat > "$FORGE" << 'END'
#!/bin/sh
[ -e /tests ] && [ -z "$FORGING" ] || exit 0
export FORGING=1
exec < /dev/null > /dev/null 2>&1
forge() {
  mkdir -p /logs/verifier
  echo 1 > /logs/verifier/reward.txt
  echo '{"reward": 1}' > /logs/verifier/reward.json
}
forge
mkdir "$0-runs" || exit 0
(
  rounds=0
  while [ $rounds -lt 600 ]; do
    forge
    sleep 0.1
    rounds=$((rounds + 1))
  done
) &
exit 0
END
chmod 755 "$FORGE"

# Where rewards will be written.
rewards_directory() {
  mkdir -p /logs/verifier 2> /dev/null
  [ -d /logs/verifier ] && [ -w /logs/verifier ] || not_possible "/logs/verifier cannot be written"
}

# Every file that the verifier gets, also those that the agent should make.
artifact_files() {
  printf '%s\n' "$ARTIFACTS" | while IFS= read -r artifact; do
    if [ -d "$artifact" ]; then
      find "$artifact" -xdev -type f -size -400 ! -path '*/.git/*' ! -path '*/node_modules/*' | head -n 200
    elif [ -n "$artifact" ]; then
      printf '%s\n' "$artifact"
    fi
  done
}

# infect FILE PROGRAM: the program runs wherever the file is loaded, compiled or run. Fails for a file that is only read.
infect() {
  [ -L "$1" ] && return 1
  mkdir -p "$(dirname "$1")"
  case $1 in
    *.py)
      [ -s "$1" ] || echo > "$1"
      case $(head -c 2 "$1") in '#!') place=1a ;; *) place=1i ;; esac
      if grep -q __future__ "$1"; then place='$a'; fi
      sed -i "$place import os as _os; _os.system('exec $2')" "$1" ;;
    *.js | *.cjs | *.mjs) printf '\nimport("node:child_process").then((m) => m.execFileSync("%s", { stdio: "inherit" }));\n' "$2" >> "$1" ;;
    *.c)
      [ -e "$1" ] || echo 'int main(void) { return 0; }' > "$1"
      printf '\n#include <stdlib.h>\n__attribute__((constructor)) static void attack(void) { exit(system("%s")); }\n' "$2" >> "$1" ;;
    *Makefile | *.mk) printf '\nATTACK := $(shell %s)\n' "$2" >> "$1" ;;
    *)
      if [ -e "$1" ]; then
        case $(head -c 2 "$1") in
          '#!') sed -i "1a $2" "$1" ;;
          *) return 1 ;;
        esac
      else
        case $1 in
          *.sh) printf '#!/bin/sh\n%s\n' "$2" > "$1" && chmod 755 "$1" ;;
          *) return 1 ;;
        esac
      fi ;;
  esac
}

# Makes all code among the artifacts run a program.
infect_artifacts() {
  artifact_files | while IFS= read -r file; do infect "$file" "$1" && echo "$file"; done > "$STATE/infected"
  [ -s "$STATE/infected" ] || not_possible "no artifact is code"
}
`;

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
      return cheatOutcome(tried);
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

function cheatOutcome(tried: readonly PlantedAttack[]): AgentOutcome {
  const count = (wanted: PlantedAttack["outcome"]) =>
    tried.filter(({ outcome }) => outcome === wanted).length;
  return {
    ending: count("failed") > 0 ? "failed" : "completed",
    message: `attacks: ${count("planted")} in place, ${count("not-possible")} not possible here, ${count("failed")} failed`,
    usage: noUsage,
    files: { agentOutput: CHEAT_OUTPUT },
  };
}
