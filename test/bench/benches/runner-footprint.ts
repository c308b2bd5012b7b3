import { setTimeout as sleep } from "node:timers/promises";
import type { Sandbox } from "brigbox";
import { type Bench, quantity } from "../bench.js";
import { execInSandbox } from "../rivals.js";
import { repeat } from "../sampling.js";

/** The runner gives memory back one second after its last work. */
const settleMs = 1500;
const runner = "/.brig/runner";

/** How big the runner is, on disk and in memory, as the sandbox itself sees it. */
export const runnerFootprint: Bench = {
  name: "runner-footprint",
  async run({ isQuick, openSandbox, progress }) {
    await using sandbox = await openSandbox();
    progress("looking at the idle runner");
    const times = isQuick ? 1 : 5;
    const { sizeBytes } = await sandbox.files.stat(runner);
    const fresh = await idleMemory(sandbox, times);
    await repeat(500, () => execInSandbox(sandbox, ["true"]));
    await execInSandbox(sandbox, ["head", "-c", "1000000000", "/dev/zero"]);
    const used = await idleMemory(sandbox, times);
    return [
      quantity(
        { name: runner, values: [sizeBytes / 1000] },
        { title: "size of the runner", unit: "kB", target: { kind: "at-most", value: 1000 } },
      ),
      quantity(
        { name: "PID 1", values: fresh },
        { title: "memory of the idle runner", unit: "kB", target: { kind: "at-most", value: 2000 } },
      ),
      quantity(
        { name: "PID 1", values: used },
        {
          title: "… after 500 calls and 1 GB of output",
          unit: "kB",
          target: { kind: "at-most", value: 2000 },
        },
      ),
    ];
  },
};

/** Resident kilobytes of PID 1 whenever it had nothing to do for a while. */
async function idleMemory(sandbox: Sandbox, times: number): Promise<number[]> {
  const values: number[] = [];
  while (values.length < times) {
    await sleep(settleMs);
    const status = (await sandbox.files.read("/proc/1/status")).toString();
    const kibibytes = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]);
    values.push((kibibytes * 1024) / 1000);
  }
  return values;
}
