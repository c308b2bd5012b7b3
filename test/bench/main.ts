import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Sandbox } from "brigbox";
import { type BenchOptions, readArguments, usage } from "./arguments.js";
import type { Bench, BenchContext } from "./bench.js";
import { applyPatch } from "./benches/apply-patch.js";
import { batches } from "./benches/batches.js";
import { callLatency } from "./benches/call-latency.js";
import { cancels } from "./benches/cancels.js";
import { cliStart } from "./benches/cli-start.js";
import { codexExecServer } from "./benches/codex-exec-server.js";
import { crowdedSandbox } from "./benches/crowded-sandbox.js";
import { egress } from "./benches/egress.js";
import { growth } from "./benches/growth.js";
import { hostileNeighbours } from "./benches/hostile-neighbours.js";
import { lasting } from "./benches/lasting.js";
import { longSession } from "./benches/long-session.js";
import { lookingTools } from "./benches/looking-tools.js";
import { manySandboxes } from "./benches/many-sandboxes.js";
import { mcpTools } from "./benches/mcp-tools.js";
import { modelLoop } from "./benches/model-loop.js";
import { network } from "./benches/network.js";
import { oneCommand } from "./benches/one-command.js";
import { outputFlood } from "./benches/output-flood.js";
import { overlayChanges } from "./benches/overlay-changes.js";
import { overlayStart } from "./benches/overlay-start.js";
import { parallelCalls } from "./benches/parallel-calls.js";
import { pool } from "./benches/pool.js";
import { roundTrip } from "./benches/round-trip.js";
import { runnerFootprint } from "./benches/runner-footprint.js";
import { serve } from "./benches/serve.js";
import { serveLoad } from "./benches/serve-load.js";
import { sessionStart } from "./benches/session-start.js";
import { viewPage } from "./benches/view-page.js";
import { describeMachine } from "./machine.js";
import { type Measured, type Report, reportAsText } from "./report.js";

const benches: Bench[] = [
  callLatency,
  parallelCalls,
  sessionStart,
  pool,
  batches,
  overlayStart,
  overlayChanges,
  manySandboxes,
  outputFlood,
  runnerFootprint,
  cliStart,
  oneCommand,
  crowdedSandbox,
  cancels,
  hostileNeighbours,
  roundTrip,
  network,
  egress,
  applyPatch,
  lookingTools,
  modelLoop,
  codexExecServer,
  mcpTools,
  serve,
  serveLoad,
  lasting,
  longSession,
  viewPage,
  growth,
];

const options = readArguments(
  process.argv.slice(2),
  benches.map(({ name }) => name),
);
if (options.kind === "refused") {
  process.stderr.write(`bench: ${options.reason}\n${usage}`);
  process.exitCode = 2;
} else {
  process.exitCode = await measure(options);
}

/** The exit status: 1 when a bench failed, 130 after an interruption. A target that was missed is a result. */
async function measure({ only, isQuick, runtime, asJson, out }: BenchOptions): Promise<number> {
  const interruption = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"]) process.once(name, () => interruption.abort());
  const workspace = await mkdtemp(join(tmpdir(), "brig-bench-"));
  const { signal } = interruption;
  const context: BenchContext = {
    isQuick,
    runtime,
    workspace,
    signal,
    progress: (line) => process.stderr.write(`${line}\n`),
    openSandbox: (more = {}) => Sandbox.create({ workspace, runtime, signal, ...more }),
  };
  try {
    const machine = await describeMachine(context);
    const measured: Measured[] = [];
    for (const bench of benches.filter(({ name }) => only.length === 0 || only.includes(name))) {
      measured.push(await runOne(bench, context));
      if (signal.aborted) break;
    }
    const report: Report = { machine: machine(), isQuick, runtime: runtime ?? null, benches: measured };
    const json = `${JSON.stringify(report, null, 2)}\n`;
    if (out !== undefined) await writeFile(out, json);
    process.stdout.write(asJson ? json : reportAsText(report));
    // What was measured before an interruption took long, and is not lost.
    if (signal.aborted) return 130;
    return measured.every(({ failure }) => failure === null) ? 0 : 1;
  } finally {
    await rm(workspace, { recursive: true, force: true });
  }
}

async function runOne(bench: Bench, context: BenchContext): Promise<Measured> {
  try {
    return { name: bench.name, rows: await bench.run(context), failure: null };
  } catch (error) {
    if (context.signal.aborted) return { name: bench.name, rows: [], failure: "interrupted" };
    const failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`bench ${bench.name} failed: ${failure}\n`);
    return { name: bench.name, rows: [], failure };
  }
}
