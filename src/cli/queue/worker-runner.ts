import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "../../agent/index.js";
import type {
  AttemptAdmission,
  AttemptLimits,
  AttemptOrder,
  AttemptResult,
  AttemptRunner,
  BatchSettings,
  RunImages,
  RunSpec,
} from "../../batch/index.js";
import { attemptLimits, containerRunner, settingDifferences } from "../../batch/index.js";
import type { CliContext } from "../../command/index.js";
import { chosenAgent } from "../../command/index.js";
import { type BrigError, invalidUsage } from "../../errors.js";
import type { Engine } from "../../sandbox/index.js";
import type { WorkerFlags } from "./queue-flags.js";

export interface RunnerPlace {
  flags: WorkerFlags;
  context: CliContext;
  config: Config;
  engine: Engine;
  images: RunImages;
  /** Admits all attempts of this worker, whichever run they belong to. */
  admission: AttemptAdmission;
}

/** Runs attempts as a run's settings say. Error: `usage.invalid` if the agent would be another one here, e.g. with another provider. */
export async function openRunner(spec: RunSpec, place: RunnerPlace): Promise<AttemptRunner> {
  const { context, engine, images, admission } = place;
  const { settings } = spec;
  const { agent, options } = await agentOf(spec, place);
  const here: BatchSettings = { ...settings, agent: { name: agent.name, model: agent.model, options } };
  const differences = settingDifferences(settings, here);
  if (differences.length > 0) throw otherAgent(differences);
  const { environment } = context;
  const limits = attemptLimits(settings);
  const runtime = settings.runtime ?? undefined;
  const runner = containerRunner({ agent, engine, images, environment, limits, runtime });
  return { run: async (order) => await runAdmitted(order, { runner, admission, limits }) };
}

/** Runs an attempt as soon as this machine has room for it. */
async function runAdmitted(
  order: AttemptOrder,
  {
    runner,
    admission,
    limits,
  }: { runner: AttemptRunner; admission: AttemptAdmission; limits: AttemptLimits },
): Promise<AttemptResult> {
  const admitted = await admission.enter(order.task, order.signal, limits);
  let result: AttemptResult | null = null;
  try {
    result = await runner.run(order);
    return result;
  } finally {
    admitted.ended(result);
  }
}

async function agentOf({ agent, settings }: RunSpec, { flags, context, config }: RunnerPlace) {
  const given = { ...flags, attempts: 1, seed: 0, ...modelOf(settings) };
  if (agent.script === null) return await chosenAgent({ ...given, agent: agent.flag }, { config, context });
  const folder = await mkdtemp(join(tmpdir(), "brig-script-"));
  try {
    const file = join(folder, "script.yaml");
    await writeFile(file, agent.script);
    return await chosenAgent({ ...given, agent: `scripted:${file}` }, { config, context });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function modelOf({ agent }: BatchSettings): { model?: string } {
  return agent.model === null ? {} : { model: agent.model };
}

function otherAgent(differences: ReturnType<typeof settingDifferences>): BrigError {
  const lines = differences.map(
    ({ field, before, after }) => `  ${field}: ${before ?? "nothing"} in the run, ${after ?? "nothing"} here`,
  );
  return invalidUsage(
    ["its agent would be another one:", ...lines].join("\n"),
    "give the worker the configuration of the command that submitted the run",
  );
}
