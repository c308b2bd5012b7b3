import {
  type Episode,
  type EpisodeOptions,
  episodeListSchema,
  episodeSchema,
  healthSchema,
  type RemoteSandboxOptions,
  type ServiceHealth,
  sandboxListSchema,
  sandboxSchema,
  taskListSchema,
} from "../wire/schemas.js";
import { snapshotListSchema } from "../wire/workspace-schemas.js";
import type { RemoteCallOptions, RemoteSandbox, RemoteSnapshot } from "./client-types.js";
import { type BrigClientOptions, HttpCalls } from "./http-calls.js";
import { remoteSandbox } from "./remote-sandbox.js";
import { remoteSnapshot } from "./remote-workspace.js";

/** How long one request waits for the end of an episode; the next one follows at once. */
const POLL_MS = 30_000;

/** A task of a service. */
export interface ServedTask {
  name: string;
  instruction: string;
}

/**
 * A client of `brig serve`. Errors of every method: BrigErrors with the codes of the service, `serve.busy` when it has
 * no place left, `serve.refused` for a wrong token, `serve.unreachable`, or the signal's reason.
 */
export class BrigClient {
  readonly #calls: HttpCalls;

  /** Error: `usage.invalid` for an address that is not one of HTTP. */
  constructor(options: BrigClientOptions) {
    this.#calls = new HttpCalls(options);
  }

  /** Whether the service takes requests. Needs no token. */
  async health({ signal }: RemoteCallOptions = {}): Promise<ServiceHealth> {
    return await this.#calls.json("health", healthSchema, { signal });
  }

  /** The tasks that the service was started with. */
  async listTasks({ signal }: RemoteCallOptions = {}): Promise<ServedTask[]> {
    return (await this.#calls.json("listTasks", taskListSchema, { signal })).tasks;
  }

  /**
   * Starts a sandbox. Delete it, or use `await using`; the service removes it when nobody uses it. A second call with the same
   * `idempotencyKey` and the same options gives the same sandbox while that is there. Error: `usage.invalid` for the key with other options.
   */
  async createSandbox(
    options: RemoteSandboxOptions = {},
    { idempotencyKey, signal }: RemoteCallOptions & { idempotencyKey?: string | undefined } = {},
  ): Promise<RemoteSandbox> {
    const headers = { "idempotency-key": idempotencyKey };
    const record = await this.#calls.json("createSandbox", sandboxSchema, { headers, body: options, signal });
    return remoteSandbox(this.#calls, record);
  }

  /** A sandbox of this client that was created before. Error: `serve.unknown`. */
  async getSandbox(id: string, { signal }: RemoteCallOptions = {}): Promise<RemoteSandbox> {
    return remoteSandbox(this.#calls, await this.#calls.json("getSandbox", sandboxSchema, { id, signal }));
  }

  /** All sandboxes of this client, or those that have all of these labels. */
  async listSandboxes({
    labels = {},
    signal,
  }: RemoteCallOptions & { labels?: Readonly<Record<string, string>> | undefined } = {}): Promise<
    RemoteSandbox[]
  > {
    const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
    const request = { query: { label }, signal };
    const { sandboxes } = await this.#calls.json("listSandboxes", sandboxListSchema, request);
    return sandboxes.map((record) => remoteSandbox(this.#calls, record));
  }

  /** All snapshots of this client, for `createSandbox({ snapshot: id })`. */
  async listSnapshots({ signal }: RemoteCallOptions = {}): Promise<RemoteSnapshot[]> {
    const { snapshots } = await this.#calls.json("listSnapshots", snapshotListSchema, { signal });
    return snapshots.map((record) => remoteSnapshot(this.#calls, record));
  }

  /** Removes a snapshot of this client. Error: `snapshot.unknown`. */
  async deleteSnapshot(id: string, { signal }: RemoteCallOptions = {}): Promise<void> {
    await this.#calls.bytes("deleteSnapshot", { id, signal });
  }

  /** Begins an episode, which goes on without the client. */
  async createEpisode(options: EpisodeOptions, { signal }: RemoteCallOptions = {}): Promise<Episode> {
    return await this.#calls.json("createEpisode", episodeSchema, { body: options, signal });
  }

  /** Begins an episode and waits for its end. An abort deletes it. */
  async runEpisode(options: EpisodeOptions, { signal }: RemoteCallOptions = {}): Promise<Episode> {
    const { id } = await this.createEpisode(options, { signal });
    try {
      for (;;) {
        const episode = await this.getEpisode(id, { waitMs: POLL_MS, signal });
        if (episode.status === "ended" || episode.status === "failed") return episode;
      }
    } catch (error) {
      if (signal?.aborted) await this.deleteEpisode(id).catch(() => undefined);
      throw error;
    }
  }

  /** With `waitMs`, waits so long for its end. Error: `serve.unknown`. */
  async getEpisode(
    id: string,
    { waitMs, signal }: RemoteCallOptions & { waitMs?: number | undefined } = {},
  ): Promise<Episode> {
    return await this.#calls.json("getEpisode", episodeSchema, { id, query: { waitMs }, signal });
  }

  /** All episodes of this client. */
  async listEpisodes({ signal }: RemoteCallOptions = {}): Promise<Episode[]> {
    return (await this.#calls.json("listEpisodes", episodeListSchema, { signal })).episodes;
  }

  /** Grades an episode again from what was kept of it. Error: `usage.invalid` if nothing was, or it has not ended. */
  async gradeEpisode(id: string, { signal }: RemoteCallOptions = {}): Promise<Episode> {
    return await this.#calls.json("gradeEpisode", episodeSchema, { id, signal });
  }

  /** What the agent did, as JSON in the format ATIF. Error: `serve.unknown` if there is none. */
  async trajectory(id: string, { signal }: RemoteCallOptions = {}): Promise<string> {
    return (await this.#calls.bytes("getTrajectory", { id, signal })).toString();
  }

  /** Ends an episode and removes what it has left. */
  async deleteEpisode(id: string, { signal }: RemoteCallOptions = {}): Promise<void> {
    await this.#calls.bytes("deleteEpisode", { id, signal });
  }

  /** Closes the connections. Sandboxes and episodes stay. */
  close(): void {
    this.#calls.close();
  }
}
