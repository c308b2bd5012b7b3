import { type Command, Option } from "commander";
import type { CliContext } from "../../command/index.js";
import { addConfigOptions, durationArgument } from "../../command/index.js";
import { atLeastOne } from "../batch/batch-flags.js";
import { addQueueOptions, type WorkerFlags } from "./queue-flags.js";

const DEFAULT_LEASE_MS = 30_000;
const LONGEST_LEASE_MS = 3_600_000;

export function defineWorker(command: Command, context: CliContext): void {
  addQueueOptions(addConfigOptions(command), {
    queue: "take attempts from this queue: redis://HOST, or rediss://HOST with TLS",
    results: "where to put results, and where tasks are: as the command that submitted them has it",
  })
    .option("-n, --concurrency <number>", "attempts at a time (default: by the machine)", atLeastOne)
    .addOption(
      new Option(
        "--lease <time>",
        "others take over the attempts of a worker that is not heard of for so long",
      )
        .argParser(durationArgument({ atMostMs: LONGEST_LEASE_MS }))
        .default(DEFAULT_LEASE_MS, "30s"),
    )
    .option("--offline", "pull nothing; attempts whose image is missing fail")
    .option("--json", "print only events on stdout, one JSON object per line")
    .addHelpText("after", help)
    .action(async (flags: WorkerFlags) => {
      const { runWorkerCommand } = await import("./run-worker-command.js");
      await runWorkerCommand(flags, context);
    });
}

const help = `
A worker runs attempts on this machine's container engine, with this machine's configuration, variables and keys: none of them
is in the queue. SIGTERM or ctrl-C takes no more attempts and waits for those that run; a second one gives them back to the
queue. A password of Redis may be in BRIG_REDIS_PASSWORD, and the keys of a bucket in the usual AWS_… variables.`;
