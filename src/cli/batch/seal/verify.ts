import { resolve } from "node:path";
import { loadConfig } from "../../../agent/index.js";
import type { GradedSealed, SealCheck } from "../../../batch/index.js";
import {
  attemptLimits,
  containerGrader,
  gradeSealed,
  readPublicKey,
  refuseUnsupportedTasks,
  verifySeal,
} from "../../../batch/index.js";
import type { CliContext } from "../../../command/index.js";
import { configChoice, openBatchImages, say, writeJson, writeTable } from "../../../command/index.js";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import { connectEngine } from "../../../sandbox/index.js";
import { readChosen } from "../read-chosen.js";

export interface VerifyFlags {
  key?: string;
  task?: string[];
  exclude?: string[];
  json?: boolean;
}

const SHOWN_DIFFERENCES = 100;

/** Checks the seal first: a run that differs from what was signed is not graded. */
export async function verifyRun(
  { run, paths }: { run: string; paths: readonly string[] },
  flags: VerifyFlags,
  context: CliContext,
): Promise<void> {
  const { cwd, signal, stdout } = context;
  const folder = resolve(cwd, run);
  const key = flags.key === undefined ? null : await readPublicKey(resolve(cwd, flags.key));
  const check = await verifySeal(folder, { key, signal });
  const isIntact = check.signedBy !== null && check.differences.length === 0;
  const graded =
    isIntact && paths.length > 0 ? await gradeAll({ folder, check, paths }, flags, context) : null;
  const isSame =
    isIntact && (graded ?? []).every(({ outcome: { kind } }) => kind === "same" || kind === "left-out");
  if (flags.json === true) await writeJson(stdout, asJson(check, graded));
  else await printCheck({ check, graded, isTrusted: key !== null }, context);
  context.setExitStatus(isSame ? 0 : 1);
}

async function gradeAll(
  { folder, check, paths }: { folder: string; check: SealCheck; paths: readonly string[] },
  flags: VerifyFlags,
  context: CliContext,
): Promise<GradedSealed[]> {
  const { environment, signal, stderr } = context;
  const { settings } = check.statement.predicate.run;
  const selection = { include: flags.task, exclude: flags.exclude };
  const { tasks } = await readChosen(paths, { selection }, context);
  refuseUnsupportedTasks(tasks);
  const engine = await connectEngine({ env: environment });
  const { config } = await loadConfig(environment, configChoice({}, context));
  const images = openBatchImages({ offline: true }, { engine, config, context });
  const limits = attemptLimits(settings);
  const grade = containerGrader({
    engine,
    images,
    environment,
    limits,
    runtime: settings.runtime ?? undefined,
  });
  return await gradeSealed(folder, {
    tasks,
    grade,
    signal,
    onGraded: (graded) => {
      if (flags.json !== true) stderr.write(`${gradedLine(graded)}\n`);
    },
  });
}

function asJson(check: SealCheck, graded: readonly GradedSealed[] | null): object {
  const { statement, signedBy, files, differences } = check;
  const { sealedAt, brigVersion } = statement.predicate;
  return { signedBy, sealedAt, brigVersion, files, differences, graded };
}

async function printCheck(
  {
    check,
    graded,
    isTrusted,
  }: { check: SealCheck; graded: readonly GradedSealed[] | null; isTrusted: boolean },
  { stdout }: CliContext,
): Promise<void> {
  const { differences, signedBy, files, statement } = check;
  if (differences.length > 0) {
    const rows = differences.slice(0, SHOWN_DIFFERENCES);
    await writeTable(stdout, [
      ["FIELD", "SEALED", "FOUND"],
      ...rows.map(({ field, sealed, found }) => [field, sealed ?? "nothing", found ?? "nothing"]),
    ]);
  }
  const lines = [
    signatureLine(signedBy, { isTrusted, sealedAt: statement.predicate.sealedAt }),
    differences.length === 0
      ? `all ${files} files are as they were signed`
      : `${differences.length} things are not as they were signed`,
    ...(graded === null ? [] : [gradesLine(graded)]),
  ];
  await say(stdout, lines.map((line) => `${line}\n`).join(""));
}

function signatureLine(
  signedBy: string | null,
  { isTrusted, sealedAt }: { isTrusted: boolean; sealedAt: string },
): string {
  if (signedBy === null)
    return isTrusted
      ? "it was not signed by the given key"
      : "the signature is not by the key that the seal names";
  const known = isTrusted ? "the given key" : "a key that anybody can have made: compare its fingerprint";
  return `signed at ${sealedAt} by ${signedBy}, ${known}`;
}

function gradesLine(graded: readonly GradedSealed[]): string {
  const same = graded.filter(({ outcome }) => outcome.kind === "same").length;
  const left = graded.filter(({ outcome }) => outcome.kind === "left-out").length;
  const text = `${same} of ${graded.length - left} attempts got the same rewards again`;
  return left === 0
    ? text
    : `${text}; ${left} cannot be graded again, since their tests ran in the agent's container`;
}

/** "brig/python-bug #1: reward 1 → 0" */
function gradedLine({ task, attempt, outcome }: GradedSealed): string {
  return neutraliseLine(`${task} #${attempt}: ${outcomeText(outcome)}`);
}

function outcomeText(outcome: GradedSealed["outcome"]): string {
  switch (outcome.kind) {
    case "same":
      return "the same rewards";
    case "different":
      return outcome.differences
        .map(({ field, sealed, found }) => `${field} ${sealed} → ${found}`)
        .join(", ");
    case "other-task":
      return `not graded: its checksum was ${outcome.sealed}, and the given task has ${outcome.found}`;
    case "left-out":
      return "not graded: its tests ran in the agent's container, which is gone";
    case "failed":
      return `not graded: ${outcome.reason}`;
    default:
      return outcome satisfies never;
  }
}
