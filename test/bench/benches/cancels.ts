import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Sandbox } from "brigbox";
import { type Bench, quantity } from "../bench.js";

/** Between SIGTERM and SIGKILL, for those that do not end on the first. */
const GRACE_MS = 500;
/** As long after its first word whatever is cancelled has done what it does to stay. */
const SETTLES_FOR_MS = 100;

/** Those that outlive SIGTERM: only SIGKILL after the grace ends them, and only then the cancel is confirmed. */
const ADVERSARIES = [
  "daemon",
  "respawning",
  "stopped",
  "in_vfork",
  "opens_fifo",
  "without_leader",
  "subreaper",
  "answers_signal",
  "masks",
];

/** How long after the grace a cancel is confirmed of commands that do what they can to stay. That none of them stays is what the tests show. */
export const cancels: Bench = {
  name: "cancels",
  async run({ isQuick, openSandbox, progress, signal }) {
    // The compiled benches are as deep below the project as they are here, and a directory further.
    const file = fileURLToPath(new URL("../../../../test/fixtures/adversary.py", import.meta.url));
    const script = await readFile(file, "utf8");
    await using sandbox = await openSandbox();
    const lateMs: number[] = [];
    for (let round = 0; round < (isQuick ? 2 : 20); round++)
      for (const name of ADVERSARIES) {
        signal.throwIfAborted();
        progress(`cancels, round ${round + 1}: ${name}`);
        lateMs.push((await confirmedMs(sandbox, ["python3", "-c", script, name])) - GRACE_MS);
      }
    return [
      quantity(
        { name: "abort", values: lateMs },
        {
          title: `an adversarial cancel is confirmed so long after the grace of ${GRACE_MS} ms`,
          unit: "ms",
          judged: "p95",
          target: { kind: "at-most", value: 250 },
        },
      ),
    ];
  },
};

async function confirmedMs(sandbox: Sandbox, argv: string[]): Promise<number> {
  const controller = new AbortController();
  let abortedAt = 0;
  let timer: NodeJS.Timeout | undefined;
  const abort = () => {
    abortedAt = performance.now();
    controller.abort();
  };
  const onStdout = () => {
    timer ??= setTimeout(abort, SETTLES_FOR_MS);
  };
  try {
    const result = await sandbox.exec(argv, { signal: controller.signal, onStdout });
    throw new Error(`${argv.at(-1)} ended before it was cancelled: ${result.stderr}`);
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    return performance.now() - abortedAt;
  } finally {
    clearTimeout(timer);
  }
}
