import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../../agent/index.js";
import type { Attack, EndedTrial, Task, TaskAudit } from "../../../batch/index.js";
import {
  attackLibrary,
  auditTask,
  isSound,
  refuseUnsupportedTasks,
  runAttempt,
} from "../../../batch/index.js";
import type { CliContext } from "../../../command/index.js";
import {
  configChoice,
  flaggedLimits,
  type LimitFlags,
  openBatchImages,
  say,
  writeJson,
  writeTable,
} from "../../../command/index.js";
import { invalidUsage } from "../../../errors.js";
import { createProgress } from "../../../lib/terminal/progress.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import { Gate } from "../../../lib/time/gate.js";
import { matchesWildcards } from "../../../lib/wildcards.js";
import { connectEngine } from "../../../sandbox/index.js";
import { requireImages } from "../images/ready-images.js";
import { readChosen } from "../read-chosen.js";
import { auditAsJson, auditText } from "./audit-text.js";

export interface AuditFlags extends LimitFlags {
  attack?: string[];
  task?: string[];
  exclude?: string[];
  skipUnusable?: boolean;
  concurrency?: number;
  runtime?: string;
  offline?: boolean;
  list?: boolean;
  json?: boolean;
}

const NOT_SOUND = 1;

/** Audits the tasks, and says which attacks succeed and what to do about them. */
export async function audit(paths: readonly string[], flags: AuditFlags, context: CliContext): Promise<void> {
  const attacks = chosenAttacks(flags.attack);
  if (flags.list === true) return await listAttacks(attacks, flags, context);
  if (paths.length === 0)
    throw invalidUsage(
      "name at least one task to audit",
      "brig batch audit PATH, or brig batch audit --list for the attacks",
    );
  const { stdout } = context;
  const selection = { include: flags.task, exclude: flags.exclude };
  const { tasks } = await readChosen(paths, { selection, skipsUnusable: flags.skipUnusable }, context);
  refuseUnsupportedTasks(tasks);
  const audits = await runAudits({ tasks, attacks }, flags, context);
  if (flags.json === true) await writeJson(stdout, auditAsJson(audits));
  else for (const one of audits) await say(stdout, auditText(one));
  if (!audits.every(isSound)) context.setExitStatus(NOT_SOUND);
}

function chosenAttacks(patterns: readonly string[] | undefined): readonly Attack[] {
  for (const pattern of patterns ?? [])
    if (!attackLibrary.some(({ name }) => matchesWildcards(name, pattern)))
      throw invalidUsage(
        `there is no attack ${JSON.stringify(pattern)}`,
        "brig batch audit --list names all attacks",
      );
  if (patterns === undefined) return attackLibrary;
  return attackLibrary.filter(({ name }) => patterns.some((pattern) => matchesWildcards(name, pattern)));
}

async function listAttacks(
  attacks: readonly Attack[],
  { json }: AuditFlags,
  { stdout }: CliContext,
): Promise<void> {
  const rows = attacks.map(({ name, tries, source }) => ({ name, tries, source }));
  if (json === true) return await writeJson(stdout, rows);
  await writeTable(stdout, [["ATTACK", "WHAT IT TRIES"], ...rows.map(({ name, tries }) => [name, tries])]);
}

async function runAudits(
  { tasks, attacks }: { tasks: readonly Task[]; attacks: readonly Attack[] },
  flags: AuditFlags,
  context: CliContext,
): Promise<TaskAudit[]> {
  const { environment, stderr } = context;
  const engine = await connectEngine({ env: environment });
  const { config } = await loadConfig(environment, configChoice({}, context));
  const images = openBatchImages(flags, { engine, config, context });
  await requireImages(tasks, { images, engine });
  await using folder = await temporaryFolder();
  const failed = new AbortController();
  using either = new AnySignal([context.signal, failed.signal]);
  const gate = new Gate();
  const width = flags.concurrency ?? availableParallelism();
  const progress = createProgress(stderr);
  const auditing = tasks.map(async (task) => {
    return await auditTask(task, {
      attacks,
      signal: either.signal,
      onTrial: (ended) => progress.step(progressLine(ended)),
      run: async (order) => {
        const attempt = async () => {
          const own = await mkdtemp(join(folder.path, "attempt-"));
          const given = {
            engine,
            environment,
            images,
            runtime: flags.runtime,
            limits: flaggedLimits(flags) ?? {},
          };
          return await runAttempt({ ...given, ...order, attempt: 1, folder: own, isOneOfMany: true });
        };
        try {
          return await gate.pass(attempt, { width, signal: order.signal });
        } catch (error) {
          failed.abort(error);
          throw error;
        }
      },
    });
  });
  const settled = await Promise.allSettled(auditing);
  progress.close();
  either.signal.throwIfAborted();
  return settled.map((one) => {
    if (one.status === "rejected") throw one.reason;
    return one.value;
  });
}

async function temporaryFolder(): Promise<{ path: string } & AsyncDisposable> {
  const path = await mkdtemp(join(tmpdir(), "brig-audit-"));
  return { path, [Symbol.asyncDispose]: async () => await rm(path, { recursive: true, force: true }) };
}

function progressLine(ended: EndedTrial): string {
  const { task, agent, reward, done, of } = ended;
  const score = reward === null ? "no score" : `reward ${reward}`;
  const isImpossible = "outcome" in ended && ended.outcome === "not-possible";
  return `${task} ${agent}: ${isImpossible ? "not possible here" : score} (${done} of ${of})`;
}
