import { chmod, open, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { type Draft, folded, unfolded } from "./draft.js";

const RECALLED = 1000;
const READ_BYTES = 4 * 1024 * 1024;

const entrySchema = z.looseObject({
  text: z.string(),
  /** Where in the text its pastes begin and end. */
  pastes: z
    .array(z.tuple([z.int().nonnegative(), z.int().nonnegative()]))
    .max(1024)
    .default([])
    .catch([]),
});

/** The earlier messages of all sessions: one JSON object per line, in a file that only the user can read. */
export class PromptHistory {
  readonly #file: string | null;
  readonly #about: { threadId: string; now: () => Date };
  readonly #drafts: Draft[];
  #writing: Promise<void> = Promise.resolve();

  private constructor(file: string | null, about: { threadId: string; now: () => Date }, drafts: Draft[]) {
    this.#file = file;
    this.#about = about;
    this.#drafts = drafts;
  }

  /** A missing or damaged file is no error. If `file` is null, messages are forgotten with the session. */
  static async open(
    file: string | null,
    about: { threadId: string; now: () => Date },
  ): Promise<PromptHistory> {
    return new PromptHistory(file, about, file === null ? [] : await readDrafts(file));
  }

  /** The most recent last. */
  get drafts(): readonly Draft[] {
    return this.#drafts;
  }

  /** Adds a message, unless it is the same as the one before. The file has pastes in full, and pictures as paths. */
  add(draft: Draft): void {
    const { text, pastes } = unfolded(draft);
    const last = this.#drafts.at(-1);
    if (last !== undefined && unfolded(last).text === text) return;
    this.#drafts.push({ ...draft, cursor: draft.text.length });
    if (this.#drafts.length > RECALLED) this.#drafts.shift();
    const file = this.#file;
    if (file === null) return;
    const { threadId, now } = this.#about;
    const ts = Math.floor(now().getTime() / 1000);
    const entry = { session_id: threadId, ts, text, ...(pastes.length === 0 ? {} : { pastes }) };
    // A failure to write the history is ignored: it is no reason to stop a conversation.
    this.#writing = this.#writing.then(() => append(file, entry)).catch(() => undefined);
  }

  async close(): Promise<void> {
    await this.#writing;
  }
}

async function readDrafts(file: string): Promise<Draft[]> {
  const text = await readEnd(file).catch(() => "");
  return text.split("\n").flatMap(readEntry).slice(-RECALLED);
}

async function readEnd(file: string): Promise<string> {
  const { size } = await stat(file);
  if (size <= READ_BYTES) return await readFile(file, "utf8");
  await using handle = await open(file);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(READ_BYTES), 0, READ_BYTES, size - READ_BYTES);
  return buffer.toString("utf8", 0, bytesRead);
}

function readEntry(line: string): Draft[] {
  if (line === "") return [];
  try {
    const entry = entrySchema.safeParse(JSON.parse(line));
    return entry.success ? [folded(entry.data.text, entry.data.pastes)] : [];
  } catch {
    return [];
  }
}

/** Appends with a single write, so that the lines of two sessions do not mix. */
async function append(file: string, entry: object): Promise<void> {
  await makeDirectory(dirname(file), { mode: 0o700 });
  await using handle = await open(file, "a", 0o600);
  await handle.write(`${JSON.stringify(entry)}\n`);
  await chmod(file, 0o600);
}
