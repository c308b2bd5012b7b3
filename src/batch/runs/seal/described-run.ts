import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, opendir } from "node:fs/promises";
import { join, posix } from "node:path";
import { z } from "zod";
import { readTextFile } from "../../../lib/bounded-file.js";
import { isLockFileOf } from "../../../lib/file-lock.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { batchFileSchema } from "../batch/batch-settings.js";
import { RunStore } from "../batch/run-store.js";
import type { AttemptResult } from "../results/attempt-result.js";
import { readResults } from "../results/results-file.js";
import { attemptFolder, attemptKey, runFiles } from "../results/run-files.js";
import { AGENT_PROOF, VERIFIER_PROOF } from "../write-proof.js";
import { SEAL_FILE, type SealedAttempt, type SealedFile, type SealedRun } from "./statement.js";

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

/** Most files of a run are short. */
const CHUNK_BYTES = 64 * 1024;
const MAX_DEPTH = 128;

export interface RunTree {
  files: SealedFile[];
  /** Paths that cannot be sealed: neither file nor directory, unreadable, or too deep. */
  others: string[];
}

/**
 * Hashes all files of a run, following no link. What was set aside, the seal itself and locks are no part of a run.
 * Names are only those that the folder has, so none leads out of it.
 */
export async function hashRun(
  folder: string,
  {
    signal,
    onFile,
  }: { signal?: AbortSignal | undefined; onFile?: ((files: number) => void) | undefined } = {},
): Promise<RunTree> {
  const tree: RunTree = { files: [], others: [] };
  for await (const { name, isFile } of entriesOf(folder)) {
    signal?.throwIfAborted();
    const file = isFile ? await hashFile(join(folder, name), name) : null;
    if (file === null) tree.others.push(name);
    else tree.files.push(file);
    onFile?.(tree.files.length);
  }
  tree.files.sort((a, b) => (a.name < b.name ? -1 : 1));
  return tree;
}

async function* entriesOf(
  folder: string,
  below = "",
  depth = 0,
): AsyncGenerator<{ name: string; isFile: boolean }> {
  const directory = await opendir(join(folder, below)).catch(() => null);
  if (directory === null || depth > MAX_DEPTH) {
    yield { name: below, isFile: false };
    return;
  }
  for await (const entry of directory) {
    const name = posix.join(below, entry.name);
    if (depth === 0 && isNotSealed(entry.name)) continue;
    if (entry.isDirectory()) yield* entriesOf(folder, name, depth + 1);
    else yield { name, isFile: entry.isFile() };
  }
}

function isNotSealed(name: string): boolean {
  return name === SEAL_FILE || name === runFiles.superseded || isLockFileOf(name, runFiles.batch);
}

/** Null for what cannot be read. */
async function hashFile(path: string, name: string): Promise<SealedFile | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    () => null,
  );
  if (file === null) return null;
  try {
    const hash = createHash("sha256");
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let sizeBytes = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES);
      if (bytesRead === 0) break;
      hash.update(buffer.subarray(0, bytesRead));
      sizeBytes += bytesRead;
    }
    return { name, digest: { sha256: hash.digest("hex") }, annotations: { sizeBytes } };
  } catch {
    return null;
  } finally {
    await file.close();
  }
}
