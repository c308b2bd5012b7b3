import { join } from "node:path";
import { z } from "zod";
import { readTextFile } from "../../../lib/bounded-file.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { batchFileSchema } from "../batch/batch-settings.js";
import { RunStore } from "../batch/run-store.js";
import { AGENT_PROOF, VERIFIER_PROOF } from "../evidence/write-proof.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { readResults } from "../results/results-file.js";
import { attemptFolder, attemptKey, runFiles } from "../results/run-files.js";
import type { SealedAttempt, SealedRun } from "./statement.js";

const MAX_BATCH_BYTES = 64 * 1024 * 1024;
const MAX_PROOF_BYTES = 4 * 1024 * 1024;

/** Description of a run, read from its files. */
export interface DescribedRun {
  /** Null if `batch.json` is missing or damaged. */
  run: SealedRun | null;
  attempts: SealedAttempt[];
  /** Attempts whose `result.json` says something else than `results.jsonl`, or is missing. */
  contradictions: string[];
}

/** Reads a run that anybody may have written: what cannot be read is missing in what it says. */
export async function describeRun(folder: string, signal?: AbortSignal): Promise<DescribedRun> {
  const store = new RunStore(folder);
  const described: DescribedRun = { run: await readBatch(folder), attempts: [], contradictions: [] };
  for await (const result of readResults(store.resultsPath)) {
    signal?.throwIfAborted();
    described.attempts.push(await describeAttempt(folder, result));
    const own = await store.readResult(result);
    if (JSON.stringify(own) !== JSON.stringify(result)) described.contradictions.push(attemptKey(result));
  }
  described.attempts.sort((a, b) => (attemptKey(a) < attemptKey(b) ? -1 : 1));
  return described;
}

async function readBatch(folder: string): Promise<SealedRun | null> {
  const read = await readTextFile(join(folder, runFiles.batch), MAX_BATCH_BYTES);
  const batch = batchFileSchema.safeParse(read.kind === "text" ? parseJson(read.text) : null).data;
  return batch === undefined ? null : { settings: batch.settings, tasks: batch.tasks };
}

async function describeAttempt(folder: string, result: AttemptResult): Promise<SealedAttempt> {
  const { task, attempt, taskChecksum, status, reward, rewards, imageId, steps } = result;
  const own = join(folder, attemptFolder(result));
  const agent = await readProof(join(own, AGENT_PROOF));
  const verifiers = await Promise.all(
    steps.map((_, index) =>
      readProof(join(own, steps.length === 1 ? "" : join("steps", String(index + 1)), VERIFIER_PROOF)),
    ),
  );
  return {
    task,
    attempt,
    taskChecksum,
    status,
    reward,
    rewards,
    images: { agent: imageId, verifier: verifiers.map((proof) => proof?.imageId ?? null) },
    policy: {
      agent: isConfirmed(agent),
      verifier: verifiers.map(isConfirmed),
    },
  };
}

const proofSchema = z.looseObject({ imageId: z.string(), differences: z.array(z.unknown()) });
type SealedProof = z.infer<typeof proofSchema>;

async function readProof(path: string): Promise<SealedProof | null> {
  const read = await readTextFile(path, MAX_PROOF_BYTES);
  return proofSchema.safeParse(read.kind === "text" ? parseJson(read.text) : null).data ?? null;
}

function isConfirmed(proof: SealedProof | null): boolean | null {
  return proof === null ? null : proof.differences.length === 0;
}
