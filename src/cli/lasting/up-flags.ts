import type { Command } from "commander";
import type { PublishedPort, SandboxFlags } from "../../command/index.js";
import {
  addSandboxOptions,
  durationArgument,
  publishOption,
  READS_ONLY_EGRESS,
  secretOption,
  setupNetworkOption,
  setupOption,
} from "../../command/index.js";
import { invalidUsage } from "../../errors.js";

export interface UpFlags extends SandboxFlags {
  name?: string;
  idle?: number;
  maxLife?: number;
  publish?: PublishedPort[];
}

const YEAR_MS = 365 * 24 * 3_600_000;

export function addUpOptions(command: Command): Command {
  const duration = durationArgument({ atMostMs: YEAR_MS });
  return addSandboxOptions(command)
    .option("--name <name>", "the name of the sandbox (default: two words that are free)")
    .option(
      "--idle <time>",
      "end it when no command has run in it for so long: 30m, 2h (default: never)",
      duration,
    )
    .option("--max-life <time>", "end it after so long in any case (default: never)", duration)
    .addOption(publishOption())
    .addOption(secretOption())
    .addOption(setupOption())
    .addOption(setupNetworkOption())
    .addHelpText("after", HELP + READS_ONLY_EGRESS);
}

const HELP = `
It prints the name. Then brig exec --in NAME -- COMMAND runs commands in the sandbox, brig ps lists it, and brig rm NAME ends it.
A process of its own keeps such sandboxes, and ends when there is none.`;

/** Error: `usage.invalid` for what makes no sense with a sandbox that lasts. */
export function requireLasting({ keep, network }: UpFlags): void {
  if (network === "learn")
    throw invalidUsage(
      "--network learn is for a command that ends: then it proposes a list of hosts",
      "use it with brig exec or brig run, and the list that comes of it with --network allowlist:HOST,…",
    );
  if (keep === true)
    throw invalidUsage(
      "--keep is for sandboxes that end with their command",
      "leave it out: the sandbox lasts until brig stop or brig rm",
    );
}
