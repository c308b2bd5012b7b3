import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bench, type BenchContext, compare, type Row } from "../bench.js";
import { findCodex } from "../codex.js";
import { ModelEndpoint, type Visit } from "../model-endpoint.js";
import { plainEnvironment } from "../rivals.js";
import { type Contender, repeat, takeTurns } from "../sampling.js";

const CALLS = 20;

/** The loop against the same endpoint as Codex, which sandboxes its commands too: how soon it asks, and what a turn costs. */
export const modelLoop: Bench = {
  name: "model-loop",
  async run(context) {
    const codex = await findCodex(context.progress);
    if (codex === null) return [];
    const endpoint = new ModelEndpoint();
    try {
      const url = await endpoint.listen();
      const rivals = await openRivals(context, { endpoint, url, codex });
      return [await firstRequest(context, rivals), await turn(context, rivals)];
    } finally {
      endpoint.close();
    }
  },
};

/** One run of a program: when it was started, and what it asked. */
interface Run {
  startedAt: number;
  visit: Visit;
}

interface Rivals {
  ours: { name: string; run(calls: number): Promise<Run> };
  codex: { name: string; run(calls: number): Promise<Run> };
}

async function openRivals(
  { workspace }: BenchContext,
  { endpoint, url, codex }: { endpoint: ModelEndpoint; url: string; codex: string },
): Promise<Rivals> {
  const home = join(workspace, "home");
  const project = join(workspace, "project");
  await mkdir(home, { recursive: true });
  await mkdir(project, { recursive: true });
  const shared = [
    ...["-C", project, "-s", "workspace-write", "-m", "gpt-5-codex", "-c", "model_provider=bench"],
    ...["-c", `model_providers.bench={name="bench",base_url="${url}",wire_api="responses"}`, "Say true."],
  ];
  const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));
  const environment = { ...plainEnvironment(), BRIG_HOME: home, CODEX_HOME: home };
  const runOf = (program: string, args: string[]) => async (calls: number) => {
    endpoint.expect(calls);
    const startedAt = performance.now();
    const child = spawn(program, [...args, ...shared], { stdio: "ignore", env: environment });
    const [exitCode] = await once(child, "exit");
    if (exitCode !== 0) throw new Error(`${program} ended with ${exitCode}`);
    return { startedAt, visit: endpoint.visit() };
  };
  return {
    ours: { name: "brig run", run: runOf(process.execPath, [brig, "run"]) },
    codex: { name: "codex exec", run: runOf(codex, ["exec", "--skip-git-repo-check"]) },
  };
}

async function firstRequest(context: BenchContext, { ours, codex }: Rivals): Promise<Row> {
  const contender = ({ name, run }: Rivals["ours"]): Contender => ({
    name,
    batch: 1,
    async sample() {
      const { startedAt, visit } = await run(0);
      return visit.firstRequestAt - startedAt;
    },
  });
  const sampled = await alternate(context, {
    what: "the first request",
    contenders: { ours: contender(ours), codex: contender(codex) },
    rounds: context.isQuick ? 4 : 24,
  });
  return compare(sampled.ours, sampled.codex, {
    title: "start to first request, container cold",
    unit: "ms",
    direction: "ours / rival",
    target: { kind: "at-most", value: 1 },
  });
}

async function turn(context: BenchContext, { ours, codex }: Rivals): Promise<Row> {
  const contender = ({ name, run }: Rivals["ours"]): Contender => ({
    name,
    batch: 1,
    async sample() {
      const { visit } = await run(CALLS);
      return medianOf(visit.gapsMs);
    },
  });
  const sampled = await alternate(context, {
    what: `${CALLS} turns`,
    contenders: { ours: contender(ours), codex: contender(codex) },
    rounds: context.isQuick ? 3 : 12,
  });
  return compare(sampled.ours, sampled.codex, {
    title: "overhead of a turn that calls true",
    unit: "ms",
    direction: "ours / rival",
    target: { kind: "at-most", value: 0.1 },
  });
}

async function alternate(
  { progress, signal }: BenchContext,
  {
    what,
    contenders,
    rounds,
  }: { what: string; contenders: { ours: Contender; codex: Contender }; rounds: number },
) {
  for (const { sample } of Object.values(contenders)) await repeat(1, sample);
  return await takeTurns(contenders, {
    rounds,
    signal,
    onRound: (round) => progress(`${what}, round ${round} of ${rounds}`),
  });
}

function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
