import { randomBytes } from "node:crypto";
import { BrigError } from "../../../errors.js";
import type { ClientRights } from "../http/served-client.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";
import { hasLabels } from "../wire/setting-schemas.js";
import type { Capacity } from "./capacity.js";
import type { SandboxRequest } from "./open-free.js";
import { type OpenedPlace, ServedSandbox, type ServedSandboxOptions } from "./served-sandbox.js";

export interface SandboxSetOptions {
  capacity: Capacity;
  open: (request: SandboxRequest, signal: AbortSignal) => Promise<OpenedPlace>;
  /** The longest that a sandbox may be without a call, and what a client gets that says nothing. */
  idleMs: number;
  /** The same for its whole life. */
  maxLifeMs: number;
  /** Called when a sandbox that has expired cannot be removed. */
  onWarning: (error: unknown) => void;
}

/** All sandboxes of all clients. */
export class SandboxSet {
  readonly #options: SandboxSetOptions;
  readonly #sandboxes = new Map<string, ServedSandbox>();
  #addedCount = 0;

  constructor(options: SandboxSetOptions) {
    this.#options = options;
  }

  /** Errors: a refusal with 429; those of `open`; the signal's reason, and then nothing is left. */
  async create(client: string, request: SandboxRequest, signal: AbortSignal): Promise<RemoteSandboxRecord> {
    const { capacity, open, idleMs, maxLifeMs } = this.#options;
    const seat = await capacity.take(client, { waitMs: request.waitMs ?? 0, signal });
    try {
      const opened = await open(request, signal);
      if (signal.aborted) {
        await opened.close();
        signal.throwIfAborted();
      }
      const sandbox = this.add({
        id: newId(),
        client,
        opened,
        env: request.env ?? {},
        labels: request.labels ?? {},
        idleMs: request.isNeverIdle === true ? maxLifeMs : Math.min(request.idleMs ?? idleMs, idleMs),
        maxLifeMs: Math.min(request.maxLifeMs ?? maxLifeMs, maxLifeMs),
        seat,
      });
      return sandbox.record;
    } catch (error) {
      seat[Symbol.dispose]();
      throw error;
    }
  }

  /**
   * Opens copies of a sandbox with a workspace, each in a place of the client's: all of them, or none is left. Errors: `serve.unknown`;
   * `usage.invalid` without a workspace; a refusal with 429; those of a start; the signal's reason.
   */
  async fork(
    client: string,
    { id, count, signal }: { id: string; count: number; signal: AbortSignal },
  ): Promise<RemoteSandboxRecord[]> {
    const fork = this.get(client, id).forking();
    const seats: Disposable[] = [];
    const forks: (Awaited<ReturnType<typeof fork>> & { seat: Disposable })[] = [];
    try {
      while (seats.length < count)
        seats.push(await this.#options.capacity.take(client, { waitMs: 0, signal }));
      const forking = seats.map(async (seat) => void forks.push({ ...(await fork(signal)), seat }));
      // All have to be there, or to have failed, before those that are there can be removed.
      await Promise.allSettled(forking);
      await Promise.all(forking);
      signal.throwIfAborted();
      return forks.map((options) => this.add({ ...options, id: newId() }).record);
    } catch (error) {
      await Promise.all(forks.map(({ opened }) => opened.close().catch(this.#options.onWarning)));
      for (const seat of seats) seat[Symbol.dispose]();
      throw error;
    }
  }

  /** Serves a sandbox that is open, until it is removed or expires. */
  add(options: Omit<ServedSandboxOptions, "onExpired" | "longestLifeMs">): ServedSandbox {
    this.#addedCount++;
    const sandbox = new ServedSandbox({
      ...options,
      longestLifeMs: this.#options.maxLifeMs,
      onExpired: () => void this.#remove(sandbox).catch(this.#options.onWarning),
    });
    this.#sandboxes.set(options.id, sandbox);
    return sandbox;
  }

  /** Error: `serve.unknown`, also for the sandbox of another client. */
  get(client: string, id: string): ServedSandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox !== undefined && sandbox.client === client) return sandbox;
    throw new BrigError("there is no such sandbox", {
      code: "serve.unknown",
      hint: "it may have been deleted, or removed because nobody used it",
    });
  }

  /** Whoever's it is. */
  withId(id: string): ServedSandbox | null {
    return this.#sandboxes.get(id) ?? null;
  }

  ofClient(client: string): ServedSandbox[] {
    return [...this.#sandboxes.values()].filter((one) => one.client === client);
  }

  /** One that a client may see, also another client's. Error: `serve.unknown`. */
  seen({ client, rights, id }: { client: string; rights: ClientRights; id: string }): ServedSandbox {
    return this.get(rights.seesAll ? (this.#sandboxes.get(id)?.client ?? client) : client, id);
  }

  /** Those of all clients. */
  all(): ServedSandbox[] {
    return [...this.#sandboxes.values()];
  }

  /** Whose sandbox it is; null for an unknown one. */
  ownerOf(id: string): string | null {
    return this.#sandboxes.get(id)?.client ?? null;
  }

  of(
    client: string,
    { labels = [] }: { labels?: readonly string[] | undefined } = {},
  ): RemoteSandboxRecord[] {
    return this.all()
      .filter((one) => one.client === client && hasLabels(one.labels, labels))
      .map(({ record }) => record);
  }

  /** How many there have been, and how many of them still run. */
  get counts(): { added: number; open: number } {
    const open = [...this.#sandboxes.values()].filter(({ hasEnded }) => !hasEnded).length;
    return { added: this.#addedCount, open };
  }

  /** The record of a sandbox of the client that still runs. */
  find(client: string, id: string): RemoteSandboxRecord | null {
    const sandbox = this.#sandboxes.get(id);
    return sandbox?.client === client && !sandbox.hasEnded ? sandbox.record : null;
  }

  /** Errors: `serve.unknown`; `engine.failed`, and then it is still there. */
  async remove(client: string, id: string): Promise<void> {
    await this.#remove(this.get(client, id));
  }

  /** Removes all of them. Those that cannot be removed end with their leases. */
  async close(): Promise<void> {
    const { onWarning } = this.#options;
    await Promise.all([...this.#sandboxes.values()].map((sandbox) => this.#remove(sandbox).catch(onWarning)));
  }

  async #remove(sandbox: ServedSandbox): Promise<void> {
    await sandbox.remove();
    this.#sandboxes.delete(sandbox.id);
  }
}

/** Nobody guesses one: 160 random bits. */
export function newId(): string {
  return randomBytes(20).toString("hex");
}
