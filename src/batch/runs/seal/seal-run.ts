import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { readVersion } from "../../../version.js";
import { RunStore, requireRun } from "../batch/run-store.js";
import { describeRun, hashRun } from "./described-run.js";
import { publicPem, type SealKey } from "./keys.js";
import { keyId, PREDICATE_TYPE, SEAL_FILE, STATEMENT_TYPE, type Statement, signed } from "./statement.js";

export interface SealOptions {
  key: SealKey;
  now: () => Date;
  signal?: AbortSignal | undefined;
  onFile?: ((files: number) => void) | undefined;
}

export interface Sealed {
  file: string;
  keyId: string;
  files: number;
  attempts: number;
}

/**
 * Writes `seal.json` into the folder of a run that nothing runs in. Errors: `usage.invalid` for a folder that is no run,
 * or contains what cannot be sealed; `session.busy`; those of the host's file system.
 */
export async function sealRun(folder: string, { key, now, signal, onFile }: SealOptions): Promise<Sealed> {
  await requireRun(folder);
  using _lock = await new RunStore(folder).lock();
  const { run, attempts, contradictions } = await describeRun(folder, signal);
  const { files, others } = await hashRun(folder, { signal, onFile });
  refuse(
    contradictions,
    "attempts have a result.json that is missing or says something else than results.jsonl",
    {
      hint: "give the command that made the run again: it repairs results.jsonl",
    },
  );
  refuse(others, "things in its folder are neither files nor directories, or cannot be read", {
    hint: "remove them",
  });
  const statement: Statement = {
    _type: STATEMENT_TYPE,
    subject: files,
    predicateType: PREDICATE_TYPE,
    predicate: {
      brigVersion: readVersion(),
      sealedAt: now().toISOString(),
      publicKey: publicPem(key.publicKey),
      run: run ?? (await requireRun(folder)),
      attempts,
    },
  };
  const envelope = signed(JSON.stringify(statement), key.privateKey, key.publicKey);
  const file = join(folder, SEAL_FILE);
  await writeDurably(file, `${JSON.stringify(envelope)}\n`);
  return { file, keyId: keyId(key.publicKey), files: files.length, attempts: attempts.length };
}

const SHOWN_NAMES = 5;

function refuse(names: readonly string[], what: string, { hint }: { hint: string }): void {
  if (names.length === 0) return;
  const shown = names.slice(0, SHOWN_NAMES).map((name) => JSON.stringify(name));
  const more = names.length > shown.length ? " and others" : "";
  throw new BrigError(`the run cannot be sealed: ${names.length} ${what}: ${shown.join(", ")}${more}`, {
    code: "usage.invalid",
    hint,
  });
}
