import type { Command } from "commander";
import type { QueueStatus } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson, writeTable } from "../../command/index.js";
import { addQueueOptions, type QueueFlags } from "./queue-flags.js";

type Flags = Partial<QueueFlags> & { json?: boolean };

const QUEUE_TEXT = "the queue: redis://HOST, or rediss://HOST with TLS";

export function defineQueue(command: Command, context: CliContext): void {
  addQueueOptions(command.command("status"), { queue: QUEUE_TEXT })
    .description("say what waits, what runs on which worker, and what is done")
    .option("--json", "print it as JSON")
    .action(async (flags: Flags) => await status(flags, context));
  addQueueOptions(command.command("cancel"), { queue: QUEUE_TEXT })
    .description("take a run out of the queue, and end those of its attempts that run")
    .argument("<run>", "the run, as brig queue status shows it")
    .option("--json", "print what was cancelled as JSON")
    .action(async (run: string, flags: Flags) => await cancel(run, flags, context));
}

async function status(flags: Flags, context: CliContext): Promise<void> {
  const [{ openQueue }, { readQueueStatus }] = await Promise.all([
    import("./open-queue.js"),
    import("../../batch/index.js"),
  ]);
  await using opened = await openQueue(flags, context);
  const found = await readQueueStatus(opened.queue);
  if (flags.json === true) return await writeJson(context.stdout, found);
  await writeStatus(found, context);
}

async function writeStatus(status: QueueStatus, { stdout }: CliContext): Promise<void> {
  const { waiting, running, stalled, workers, runs } = status;
  await say(stdout, `${waiting} waiting, ${running.length} running, ${stalled} of them stalled\n`);
  const runRows = runs.map((one) =>
    [one.run, one.waiting, one.running, one.done, one.failed, `${one.host}:${one.folder}`].map(String),
  );
  await writeRows(stdout, ["RUN", "WAITING", "RUNNING", "DONE", "FAILED", "FOLDER"], runRows);
  const workerRows = workers.map((one) => [
    one.id,
    `${one.running}/${one.slots}`,
    one.isDraining ? "draining" : "ready",
  ]);
  await writeRows(stdout, ["WORKER", "RUNNING", "STATE"], workerRows);
  const attemptRows = running.map((one) => [
    one.task,
    String(one.attempt),
    one.worker ?? "-",
    one.isStalled ? "stalled" : (one.startedAt ?? "-"),
  ]);
  await writeRows(stdout, ["TASK", "ATTEMPT", "WORKER", "SINCE"], attemptRows);
}

async function writeRows(stdout: CliContext["stdout"], head: string[], rows: string[][]): Promise<void> {
  if (rows.length === 0) return;
  await write(stdout, "\n");
  await writeTable(stdout, [head, ...rows]);
}

async function cancel(run: string, flags: Flags, context: CliContext): Promise<void> {
  const [{ openQueue }, { cancelRun }] = await Promise.all([
    import("./open-queue.js"),
    import("../../batch/index.js"),
  ]);
  await using opened = await openQueue(flags, context);
  const { removed, running } = await cancelRun(opened.queue, run);
  if (flags.json === true) return await writeJson(context.stdout, { run, removed, running });
  await say(
    context.stdout,
    `${removed} attempts were taken out of the queue; ${running} that run are being ended\n`,
  );
}
