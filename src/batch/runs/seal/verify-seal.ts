import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { compareSealed, type SealDifference } from "./compare-sealed.js";
import { describeRun } from "./described-run.js";
import { type Envelope, envelopeSchema, isSignedBy, keyId, payloadOf } from "./envelope.js";
import { parsePublicKey } from "./keys.js";
import { hashRun } from "./run-tree.js";
import { SEAL_FILE, type Statement, statementSchema } from "./statement.js";

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
