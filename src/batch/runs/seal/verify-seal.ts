import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { fieldDifferences } from "../batch/batch-settings.js";
import { attemptKey } from "../results/run-files.js";
import { type DescribedRun, describeRun, hashRun, type RunTree } from "./described-run.js";
import { parsePublicKey } from "./keys.js";
import {
  type Envelope,
  envelopeSchema,
  isSignedBy,
  keyId,
  payloadOf,
  SEAL_FILE,
  type SealedAttempt,
  type SealedFile,
  type SealedRun,
  type Statement,
  statementSchema,
} from "./statement.js";

/** 200 000 files take about 60 MB. */
const MAX_SEAL_BYTES = 256 * 1024 * 1024;

export interface SealCheck {
  statement: Statement;
  /** Null if the key that the seal names has not signed it, or another one was asked for. */
  signedBy: string | null;
  files: number;
  differences: SealDifference[];
}

/**
 * Checks the signature of a sealed run, and that everything is as it was sealed. With a key only a signature by that key
 * counts. Error: `usage.invalid` for a folder without a seal, and for a seal that is none.
 */
export async function verifySeal(
  folder: string,
  { key, signal, onFile }: { key: KeyObject | null; signal?: AbortSignal; onFile?: (files: number) => void },
): Promise<SealCheck> {
  const { envelope, statement } = await readSeal(folder);
  const trusted = key ?? parsePublicKey(statement.predicate.publicKey);
  const isSigned = trusted !== null && isSignedBy(envelope, trusted);
  const tree = await hashRun(folder, { signal, onFile });
  const described = await describeRun(folder, signal);
  return {
    statement,
    signedBy: isSigned ? keyId(trusted) : null,
    files: statement.subject.length,
    differences: compareSealed(statement, { tree, described }),
  };
}

async function readSeal(folder: string): Promise<{ envelope: Envelope; statement: Statement }> {
  const file = join(folder, SEAL_FILE);
  const read = await readTextFile(file, MAX_SEAL_BYTES);
  if (read.kind === "missing")
    throw new BrigError(`${JSON.stringify(folder)} is not a sealed run: it has no ${SEAL_FILE}`, {
      code: "usage.invalid",
      hint: "name the folder of a run that brig batch seal has sealed",
    });
  if (read.kind !== "text") throw noSeal(file, read.reason);
  const envelope = envelopeSchema.safeParse(parseJson(read.text));
  if (!envelope.success) throw noSeal(file, `is not a seal:\n${z.prettifyError(envelope.error)}`);
  const value = parseJson(payloadOf(envelope.data));
  if (isTooDeep(value)) throw noSeal(file, "is not a seal: it is nested too deeply");
  const statement = statementSchema.safeParse(value);
  if (statement.success) return { envelope: envelope.data, statement: statement.data };
  throw noSeal(file, `has a statement that is none of brig's:\n${z.prettifyError(statement.error)}`);
}

function noSeal(file: string, reason: string): BrigError {
  return new BrigError(`${JSON.stringify(file)} ${reason}`, {
    code: "usage.invalid",
    hint: "somebody has changed it, or another version of brig has written it; ask for it again",
  });
}

/** One thing that is not as it was sealed. Null for what is not there. */
interface SealDifference {
  field: string;
  sealed: string | null;
  found: string | null;
}

/** Everything in which a run differs from what was sealed: files first, then what they say, field by field. */
function compareSealed(
  { subject, predicate }: Statement,
  { tree, described }: { tree: RunTree; described: DescribedRun },
): SealDifference[] {
  const fileField = ({ name, digest, annotations }: SealedFile): [string, string] => [
    `files.${name}`,
    `${digest.sha256}, ${annotations.sizeBytes} bytes`,
  ];
  const sealedFiles = subject.map(fileField);
  const foundFiles = [
    ...tree.files.map(fileField),
    ...tree.others.map((name): [string, string] => [`files.${name}`, "not a file that can be read"]),
  ];
  return [
    ...differences(sealedFiles, foundFiles),
    ...differences(
      [...runFields(predicate.run), ...predicate.attempts.flatMap(attemptFields)],
      [
        ...(described.run === null ? [] : runFields(described.run)),
        ...described.attempts.flatMap(attemptFields),
      ],
    ),
    ...described.contradictions.map((key) => ({
      field: `attempts.${key}`,
      sealed: "result.json as in results.jsonl",
      found: "they contradict each other",
    })),
  ];
}

function differences(
  sealed: readonly (readonly [string, string])[],
  found: readonly (readonly [string, string])[],
): SealDifference[] {
  return fieldDifferences(sealed, found).map(({ field, before, after }) => {
    return { field, sealed: before, found: after };
  });
}

function runFields({ settings, tasks }: SealedRun): [string, string][] {
  return [
    ...fieldsOf(settings, "settings"),
    ...tasks.flatMap((task) => fieldsOf(task, `tasks.${task.name}`)),
  ];
}

function attemptFields(attempt: SealedAttempt): [string, string][] {
  return fieldsOf(attempt, `attempts.${attemptKey(attempt)}`);
}

function fieldsOf(value: unknown, field: string): [string, string][] {
  if (typeof value !== "object" || value === null) return [[field, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, each]) => fieldsOf(each, `${field}.${name}`));
}
