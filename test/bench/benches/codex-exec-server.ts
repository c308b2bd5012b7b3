import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Bench, type BenchContext, compare } from "../bench.js";
import { findCodex } from "../codex.js";
import { ModelEndpoint } from "../model-endpoint.js";
import { type Contender, repeat, takeTurns } from "../sampling.js";

const CALLS = 20;

/** What a call costs the real Codex that runs its commands in brig, against the same one in its own local sandbox. */
export const codexExecServer: Bench = {
  name: "codex-exec-server",
  async run(context) {
    const codex = await findCodex(context.progress);
    if (codex === null) return [];
    const endpoint = new ModelEndpoint();
    try {
      const url = await endpoint.listen();
      const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));
      const args = [
        brig,
        "exec-server",
        ...(context.runtime === undefined ? [] : ["--runtime", context.runtime]),
      ];
      const environments = `default = "brig"
include_local = false
[[environments]]
id = "brig"
program = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify(args)}
`;
      const setting = { codex, url, endpoint };
      const contenders = {
        ours: await contender(context, { ...setting, name: "codex in brig", environments }),
        codex: await contender(context, {
          ...setting,
          name: "codex in its local sandbox",
          environments: null,
        }),
      };
      for (const { sample } of Object.values(contenders)) await repeat(1, sample);
      const sampled = await takeTurns(contenders, {
        rounds: context.isQuick ? 3 : 12,
        signal: context.signal,
        onRound: (round) => context.progress(`${CALLS} calls of Codex, round ${round}`),
      });
      return [
        compare(sampled.ours, sampled.codex, {
          title: "Codex's turn that calls true: in brig, in its own sandbox",
          unit: "ms",
          direction: "ours / rival",
          target: { kind: "at-most", value: 1 },
        }),
      ];
    } finally {
      endpoint.close();
    }
  },
};

interface Setting {
  name: string;
  codex: string;
  url: string;
  endpoint: ModelEndpoint;
  environments: string | null;
}

/** One run of Codex with several calls; the sample is the median time between an answer of the model and the next request. */
async function contender(
  { workspace }: BenchContext,
  { name, codex, url, endpoint, environments }: Setting,
): Promise<Contender> {
  const directory = join(workspace, name.replaceAll(" ", "-"));
  const home = join(directory, "home");
  const project = join(directory, "project");
  // Codex makes the helper of its own sandbox in no home that lies in a temporary directory.
  const temporary = join(directory, "tmp");
  for (const path of [home, project, temporary]) await mkdir(path, { recursive: true });
  if (environments !== null) await writeFile(join(home, "environments.toml"), environments);
  const args = [
    ...["exec", "--skip-git-repo-check", "-C", project, "-s", "workspace-write", "-m", "gpt-5-codex"],
    ...["-c", "model_provider=bench"],
    ...["-c", `model_providers.bench={name="bench",base_url="${url}",wire_api="responses"}`, "Say true."],
  ];
  return {
    name,
    batch: 1,
    async sample() {
      endpoint.expect(CALLS);
      const env = { ...process.env, CODEX_HOME: home, TMPDIR: temporary };
      const child = spawn(codex, args, { stdio: "ignore", env });
      const [exitCode] = await once(child, "exit");
      if (exitCode !== 0) throw new Error(`${name} ended with ${exitCode}`);
      return median(endpoint.visit().gapsMs);
    },
  };
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
