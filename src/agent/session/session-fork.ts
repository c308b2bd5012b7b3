import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";
import { BrigError } from "../../errors.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { withoutMark } from "../../lib/utf8.js";
import { readSessionLines } from "./read/session-lines.js";
import { stepsOf } from "./read/session-steps.js";
import { sessionPath } from "./write/session-file.js";

export interface ForkOptions {
  /** `$BRIG_HOME`. */
  home: string;
  /** The id of the new session. */
  threadId: string;
  version: string;
  now: Date;
  /** The last step to copy, as `brig sessions show` numbers them. Default: all steps. */
  atStep?: number | undefined;
  signal?: AbortSignal | undefined;
}

export interface ForkedSession {
  path: string;
  threadId: string;
  forkedFromId: string;
}

const metaLine = z.looseObject({ payload: z.looseObject({ id: z.string() }) });

/**
 * Copies a session, or its part up to a step, to a new file with a new id. Lines that cannot be read are left
 * out. A failure leaves no file behind. A step that does not exist is `usage.invalid`.
 */
export async function forkSession(source: string, options: ForkOptions): Promise<ForkedSession> {
  const { home, threadId, now, signal } = options;
  const lastLine = await lastLineOf(source, options);
  const path = sessionPath(home, threadId, now);
  const unfinished = `${path}.new`;
  try {
    await makeDirectory(dirname(path), { mode: 0o700 });
    const file = await open(unfinished, "wx", 0o600);
    try {
      const forkedFromId = await copyLines(source, { file, lastLine, options });
      await file.sync();
      await rename(unfinished, path);
      return { path, threadId, forkedFromId };
    } finally {
      await file.close();
    }
  } catch (cause) {
    await rm(unfinished, { force: true });
    signal?.throwIfAborted();
    if (cause instanceof BrigError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new BrigError(`the session cannot be copied to ${path}: ${reason}`, {
      code: "session.invalid",
      cause,
    });
  }
}

async function lastLineOf(source: string, { atStep, signal }: ForkOptions): Promise<number> {
  if (atStep === undefined) return Number.POSITIVE_INFINITY;
  let count = 0;
  for await (const step of stepsOf(readSessionLines(source, { signal }))) {
    if (step.number === atStep) return step.lastLine;
    count = step.number;
  }
  throw new BrigError(`the session has no step ${atStep}`, {
    code: "usage.invalid",
    hint: count === 0 ? "it has none" : `it has ${count}; brig sessions show prints them`,
  });
}

interface Copying {
  file: FileHandle;
  lastLine: number;
  options: ForkOptions;
}

/** Returns the original's id. `appendFile` writes all or fails; `write` may write less, as on a disk that is nearly full. */
async function copyLines(source: string, { file, lastLine, options }: Copying): Promise<string> {
  const { home, threadId, version, now, atStep, signal } = options;
  const writeRecord = async (type: string, payload: object) => {
    await file.appendFile(`${JSON.stringify({ timestamp: now.toISOString(), type, payload })}\n`);
  };
  let forkedFromId: string | null = null;
  for await (const line of readSessionLines(source, { signal })) {
    if (line.line > lastLine) break;
    if (line.kind !== "record") continue;
    if (forkedFromId === null && line.record.type === "session_meta") {
      const { payload } = metaLine.parse(JSON.parse(withoutMark(line.bytes.toString("utf8"))));
      forkedFromId = payload.id;
      const own = { id: threadId, forked_from_id: forkedFromId, timestamp: now.toISOString() };
      await writeRecord("session_meta", { ...payload, ...own, originator: "brig", cli_version: version });
    }
    await file.appendFile(line.bytes);
    await file.appendFile("\n");
  }
  if (forkedFromId === null)
    throw new BrigError(`${source}: failed to parse thread ID from rollout file`, {
      code: "session.invalid",
    });
  // A file from elsewhere may name any directory, so nothing runs there unasked.
  const isForeign = !resolve(source).startsWith(join(resolve(home), "sessions", "/"));
  const foreign = isForeign ? { is_foreign: true } : {};
  await writeRecord("brig.fork", { forked_from_id: forkedFromId, at_step: atStep ?? null, ...foreign });
  return forkedFromId;
}
