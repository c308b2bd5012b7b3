import { randomBytes } from "node:crypto";
import { BrigError, invalidUsage } from "../../../errors.js";
import type { Receipt } from "../../../sandbox/index.js";
import type { MemoryBudget } from "../http/memory-budget.js";
import { busy } from "../http/refusal.js";
import type { ClientRights } from "../http/served-client.js";
import { OutputBudget } from "../processes/output-budget.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";
import { hasLabels } from "../wire/setting-schemas.js";
import type { Capacity } from "./capacity.js";
import type { KnownKey } from "./idempotent-creates.js";
import type { Need } from "./machine-room.js";
import type { SandboxRequest } from "./open-free.js";
import type { AskedFor } from "./quota.js";
import { type OpenedPlace, ServedSandbox, type ServedSandboxOptions } from "./served-sandbox.js";

export interface SandboxSetOptions {
  capacity: Capacity;
  /** What clients may ask for, and what it takes. Default: anything, which takes nothing but a place. */
  quotas?: SandboxQuotas | undefined;
  open: (request: SandboxRequest, signal: AbortSignal) => Promise<OpenedPlace>;
  /** Where what is kept of sandboxes and of their outputs counts. Default: nowhere. */
  memory?: MemoryBudget | undefined;
  outputs?: OutputBudget | undefined;
  /** The longest that a sandbox may be without a call, and what a client gets that says nothing. */
  idleMs: number;
  /** The same for its whole life. */
  maxLifeMs: number;
  /** Called when a sandbox that has expired cannot be removed. */
  onWarning: (error: unknown) => void;
}

const RETRY_SECONDS = 2;
const MAX_RECEIPTS = 1024;

export interface SandboxQuotas {
  /** What a request is for that only some clients may have. */
  asked(request: SandboxRequest): AskedFor;
  /** Error: a refusal with 403. */
  refuse(client: string, asked: AskedFor): void;
  need(request: SandboxRequest): Promise<Need>;
}

/** All sandboxes of all clients. */
export class SandboxSet {
  readonly #options: SandboxSetOptions;
  readonly #sandboxes = new Map<string, ServedSandbox>();
  /** Those of an earlier service that are not taken over yet, and whose they are. */
  readonly #expected = new Map<string, string>();
  /** Of the latest sandboxes that were removed. */
  readonly #receipts = new Map<string, { client: string; receipt: Receipt }>();
  readonly #outputsOfClients = new Map<string, OutputBudget>();
  #addedCount = 0;

  constructor(options: SandboxSetOptions) {
    this.#options = options;
  }

  /** Errors: a refusal with 429; `store.failed`; those of `open`; the signal's reason, and then nothing is left. */
  async create(
    client: string,
    request: SandboxRequest,
    { signal, key }: { signal: AbortSignal; key?: KnownKey | undefined },
  ): Promise<RemoteSandboxRecord> {
    const { capacity, open, quotas, idleMs, maxLifeMs } = this.#options;
    quotas?.refuse(client, quotas.asked(request));
    const need = await quotas?.need(request);
    const seat = await capacity.take(client, { waitMs: request.waitMs ?? 0, signal, need });
    const memory = this.#options.memory?.share(client);
    try {
      memory?.take(bytesOf(request.env ?? {}) + bytesOf(request.labels ?? {}));
      const opened = await open(request, signal);
      if (signal.aborted) {
        await opened.close();
        signal.throwIfAborted();
      }
      const sandbox = this.add({
        id: newId(),
        client,
        opened,
        key,
        need,
        memory,
        env: request.env ?? {},
        labels: request.labels ?? {},
        idleMs: request.isNeverIdle === true ? maxLifeMs : Math.min(request.idleMs ?? idleMs, idleMs),
        maxLifeMs: Math.min(request.maxLifeMs ?? maxLifeMs, maxLifeMs),
        pausesAtExpiry: request.pausesAtExpiry,
        seat,
      });
      await this.#note([sandbox]);
      return sandbox.record;
    } catch (error) {
      seat[Symbol.dispose]();
      memory?.[Symbol.dispose]();
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
    const original = this.get(client, id);
    const fork = original.forking();
    const seats: Disposable[] = [];
    const forks: (Awaited<ReturnType<typeof fork>> & { seat: Disposable })[] = [];
    try {
      while (seats.length < count)
        seats.push(await this.#options.capacity.take(client, { waitMs: 0, signal, need: original.need }));
      const forking = seats.map(async (seat) => void forks.push({ ...(await fork(signal)), seat }));
      // All have to be there, or to have failed, before those that are there can be removed.
      await Promise.allSettled(forking);
      await Promise.all(forking);
      signal.throwIfAborted();
      const memory = () => this.#options.memory?.share(client);
      const added = forks.splice(0).map((options) => this.add({ ...options, memory: memory(), id: newId() }));
      await this.#note(added);
      return added.map(({ record }) => record);
    } catch (error) {
      await Promise.all(forks.map(({ opened }) => opened.close().catch(this.#options.onWarning)));
      for (const seat of seats) seat[Symbol.dispose]();
      throw error;
    }
  }

  /** One that cannot be noted is not left behind. Error: `store.failed`. */
  async #note(sandboxes: readonly ServedSandbox[]): Promise<void> {
    try {
      for (const sandbox of sandboxes) sandbox.note();
    } catch (error) {
      await Promise.all(sandboxes.map((one) => this.#remove(one).catch(this.#options.onWarning)));
      throw error;
    }
  }

  /** Says whose a sandbox is that is still to be added, until what this returns is disposed of. */
  expect(client: string, id: string): Disposable {
    this.#expected.set(id, client);
    return { [Symbol.dispose]: () => void this.#expected.delete(id) };
  }

  /** Serves a sandbox that is open, until it is removed or expires. */
  add(
    options: Omit<ServedSandboxOptions, "onExpired" | "longestLifeMs" | "requireNetwork" | "outputs">,
  ): ServedSandbox {
    const { maxLifeMs, quotas, onWarning } = this.#options;
    // An earlier service has counted those that it created.
    if (options.since === undefined) this.#addedCount++;
    const sandbox = new ServedSandbox({
      ...options,
      ...{ outputs: this.#outputsOf(options.client), longestLifeMs: maxLifeMs },
      requireNetwork: (network) => quotas?.refuse(options.client, { network }),
      onExpired: () => void this.#remove(sandbox).catch(onWarning),
    });
    this.#sandboxes.set(options.id, sandbox);
    return sandbox;
  }

  /** A client whose processes print much loses output of its own. */
  #outputsOf(client: string): OutputBudget | undefined {
    const { outputs } = this.#options;
    if (outputs === undefined) return undefined;
    const known = this.#outputsOfClients.get(client) ?? new OutputBudget(Number.MAX_SAFE_INTEGER, outputs);
    this.#outputsOfClients.set(client, known);
    return known;
  }

  /** Errors: a refusal with 503 for one that is still to be added; `serve.unknown`, also for the sandbox of another client. */
  get(client: string, id: string): ServedSandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox !== undefined && sandbox.client === client) return sandbox;
    if (this.#expected.get(id) === client) throw notYet();
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
    return this.get(rights.seesAll ? (this.ownerOf(id) ?? client) : client, id);
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

  /** Removes all that a client has. */
  async removeAllOf(client: string): Promise<void> {
    const { onWarning } = this.#options;
    await Promise.all(this.ofClient(client).map((sandbox) => this.#remove(sandbox).catch(onWarning)));
  }

  /**
   * Removes all of them, or with `keeps` only those with which no other service can go on. Those that cannot be removed end with their leases.
   * Resolves to how many go on.
   */
  async close({ keeps = false }: { keeps?: boolean } = {}): Promise<number> {
    const { onWarning } = this.#options;
    const closing = [...this.#sandboxes.values()].map(async (sandbox) => {
      if (keeps && (await sandbox.letGo())) return this.#sandboxes.delete(sandbox.id);
      await this.#remove(sandbox).catch(onWarning);
      return false;
    });
    return (await Promise.all(closing)).filter((goesOn) => goesOn).length;
  }

  /** What a sandbox that was removed has left. Errors: `usage.invalid` while it is there; `serve.unknown`. */
  receipt(client: string, id: string): Receipt {
    const kept = this.#receipts.get(id);
    if (kept !== undefined && kept.client === client) return kept.receipt;
    this.get(client, id);
    throw invalidUsage("the sandbox is still there", "its receipt is there once it was deleted");
  }

  async #remove(sandbox: ServedSandbox): Promise<void> {
    const { id, client } = sandbox;
    await sandbox.remove();
    this.#sandboxes.delete(id);
    if (sandbox.receipt === null) return;
    this.#receipts.set(id, { client, receipt: sandbox.receipt });
    const [oldest] = this.#receipts.keys();
    if (this.#receipts.size > MAX_RECEIPTS && oldest !== undefined) this.#receipts.delete(oldest);
  }
}

function notYet() {
  return busy("the engine does not answer yet, so the sandbox of the earlier service is not taken over", {
    status: 503,
    retrySeconds: RETRY_SECONDS,
  });
}

function bytesOf(variables: Readonly<Record<string, string>>): number {
  return Object.entries(variables).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
}

/** Nobody guesses one: 160 random bits. */
export function newId(): string {
  return randomBytes(20).toString("hex");
}
