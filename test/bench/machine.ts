import { cpus, loadavg, release, totalmem, type } from "node:os";
import type { BenchContext } from "./bench.js";

/** Where and when a report comes from. Its figures compare only within it. */
export interface Machine {
  measuredAt: string;
  cpu: string;
  cores: number;
  memoryBytes: number;
  kernel: string;
  node: string;
  engine: string;
  runtime: string;
  /** Load averages of one minute when the run began and when it ended. */
  load: { before: number; after: number };
}

/** Looks now; the description is completed when it is asked for. */
export async function describeMachine({ openSandbox }: BenchContext): Promise<() => Machine> {
  const measuredAt = new Date().toISOString();
  const [before = 0] = loadavg();
  await using sandbox = await openSandbox();
  const { engine, runtime } = sandbox.proof;
  return () => ({
    measuredAt,
    cpu: cpus()[0]?.model ?? "unknown",
    cores: cpus().length,
    memoryBytes: totalmem(),
    kernel: `${type()} ${release()}`,
    node: process.version,
    engine: `${engine.product} ${engine.version}`,
    runtime,
    load: { before, after: loadavg()[0] ?? 0 },
  });
}
