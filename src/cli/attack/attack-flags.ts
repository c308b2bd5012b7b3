import type { Command } from "commander";
import { addLimitOptions, collect, type LimitFlags } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import { SANDBOX_MODES } from "../../sandbox/index.js";

/** The flags of `brig doctor` that only mean something with `--attack`. */
export interface AttackFlags extends LimitFlags {
  attack?: boolean;
  sandbox?: string[];
  policy?: string;
  network?: string;
  containerImage?: string;
  runtime?: string;
  /** False with `--no-control`. */
  control: boolean;
  html?: string;
}

export function addAttackOptions(command: Command): Command {
  return addLimitOptions(command.optionsGroup("Attempts against a sandbox:"))
    .option("--attack", "start a sandbox, try in it what it must refuse, and report what it refused")
    .option(
      "-s, --sandbox <mode>",
      `the mode to attempt it in: ${SANDBOX_MODES.join(", ")}; may be repeated (default: workspace-write)`,
      collect,
    )
    .option("--policy <file>", "a policy file instead of a mode")
    .option("--network <setting>", "none, full or allowlist:HOST,…, if the policy permits it")
    .option("--container-image <image>", "the sandbox's image (default: brig/base)")
    .option("--runtime <name>", "the OCI runtime of the sandbox, for example runsc")
    .option("--no-control", "start no container without protection, in which the attempts have to succeed")
    .option("--html <file>", "also write the result as a page that needs no other file")
    .addHelpText("after", ABOUT);
}

const ABOUT = `
With --attack, one program of brig attempts in a sandbox what it must not be able to do, and the answer of the kernel is judged. A refusal
proves something only if the same attempt succeeds elsewhere. So the attempts are also made in a container of the same image WITHOUT
protection: as root, in the host's namespaces, with the engine's socket. No program of the image runs in it, and it is removed afterwards.
No file of yours is in the sandbox's workspace, which is a new empty directory.

Exit status with --attack: 0 if everything held or is allowed by the policy, 1 if something did not hold, 125 if something could not be judged.
`;

/** Error: `usage.invalid` for a flag that is only for `--attack`. */
export function refuseWithoutAttack(flags: AttackFlags): void {
  const names = { sandbox: "--sandbox", policy: "--policy", network: "--network" } as const;
  const others = { containerImage: "--container-image", runtime: "--runtime", html: "--html" } as const;
  const limits = { memory: "--memory", cpus: "--cpus", pids: "--pids" } as const;
  const all = { ...names, ...others, ...limits };
  const given: string[] = Object.entries(all)
    .filter(([key]) => flags[key as keyof typeof all] !== undefined)
    .map(([, flag]) => flag);
  if (!flags.control) given.push("--no-control");
  if (given.length === 0) return;
  throw invalidUsage(`${given.join(" and ")} can only be used with --attack`, "add --attack");
}
