import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { BrigError } from "../../../errors.js";
import { writeDurably } from "../../../lib/files/durable-file.js";
import { makeDirectory } from "../../../lib/files/make-directory.js";
import { namesIn } from "../../../lib/files/names-in.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { listSnapshots, removeSnapshot } from "../../../sandbox/index.js";
import type { RemoteSandboxOptions } from "../wire/schemas.js";

const snapshotRecordSchema = z.object({
  id: z.string(),
  client: z.string(),
  name: z.string(),
  /** Where the workspace was in the sandbox. */
  workingDirectory: z.string(),
  /** The image and the id of the sandbox, and when it was taken. Default: nobody asks for them. */
  image: z.string().optional(),
  sandbox: z.string().optional(),
  takenAt: z.string().optional(),
});
export type SnapshotRecord = z.infer<typeof snapshotRecordSchema>;

/**
 * Whose the snapshots are that the clients have taken: a small file for each in `$BRIG_HOME`, beside the store of the snapshots, so that
 * the next service of the same client has them, too.
 */
export class SnapshotSet {
  readonly #brigHome: string;

  constructor(brigHome: string) {
    this.#brigHome = brigHome;
  }

  /** Notes a snapshot that was stored. If that cannot be, the snapshot is removed again. */
  async add(record: SnapshotRecord): Promise<void> {
    try {
      await makeDirectory(this.#directory, { mode: 0o700 });
      await writeDurably(this.#fileOf(record.id), `${JSON.stringify(record)}\n`);
    } catch (error) {
      await removeSnapshot(this.#brigHome, record.id);
      throw error;
    }
  }

  /** Error: `snapshot.unknown`, also for the snapshot of another client. */
  async get(client: string, id: string): Promise<SnapshotRecord> {
    const record = await this.#read(id);
    if (record?.client === client && (await listSnapshots(this.#brigHome)).includes(id)) return record;
    throw new BrigError("there is no such snapshot", {
      code: "snapshot.unknown",
      hint: "it may have been deleted; GET /v1/snapshots lists those that are there",
    });
  }

  /** A request for a sandbox, with what its snapshot says if it has one. Error: `snapshot.unknown`. */
  async resolve<Request extends RemoteSandboxOptions>(client: string, request: Request): Promise<Request> {
    if (request.snapshot === undefined) return request;
    const { workingDirectory } = await this.get(client, request.snapshot);
    return { ...request, workingDirectory: request.workingDirectory ?? workingDirectory };
  }

  /** Those of a client that are still stored, by their names. */
  async of(client: string): Promise<SnapshotRecord[]> {
    const stored = new Set(await listSnapshots(this.#brigHome));
    const ids = (await namesIn(this.#directory)).map((name) => name.replace(/\.json$/, ""));
    const records = await Promise.all(ids.filter((id) => stored.has(id)).map((id) => this.#read(id)));
    return records
      .filter((record) => record !== null)
      .filter((record) => record.client === client)
      .toSorted((one, other) => (one.name < other.name ? -1 : 1));
  }

  /** Error: `snapshot.unknown`. */
  async remove(client: string, id: string): Promise<void> {
    await this.get(client, id);
    await removeSnapshot(this.#brigHome, id);
    await rm(this.#fileOf(id), { force: true });
  }

  /** Null for a file that is missing or broken. */
  async #read(id: string): Promise<SnapshotRecord | null> {
    const text = await readFile(this.#fileOf(id), "utf8").catch(() => "");
    const parsed = snapshotRecordSchema.safeParse(parseJson(text));
    return parsed.success && parsed.data.id === id ? parsed.data : null;
  }

  get #directory(): string {
    return join(this.#brigHome, "serve-snapshots");
  }

  #fileOf(id: string): string {
    // What cannot be an id must lead to no other file.
    return join(this.#directory, /^[\w-]+$/.test(id) ? `${id}.json` : "none");
  }
}
