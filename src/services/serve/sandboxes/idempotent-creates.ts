import { createHash } from "node:crypto";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { Refusal } from "../http/refusal.js";
import type { RemoteSandboxRecord } from "../wire/schemas.js";

/** A request to create a sandbox that may be a repetition of an earlier one. */
export interface KeyedCreate {
  client: string;
  /** The client's `Idempotency-Key`. */
  key: string;
  /** The parsed body. */
  body: unknown;
  /** Aborted when the client has gone. */
  signal: AbortSignal;
}

/** A key, and what the body was that came with it. */
export interface KnownKey {
  key: string;
  bodyHash: string;
}

interface KnownCreate {
  bodyHash: string;
  /** What the requests wait for that have the key. */
  created: Promise<RemoteSandboxRecord>;
  /** How many requests wait for it. */
  waitingCount: number;
  /** Aborted when nobody waits for the sandbox any more before it is there. */
  abandoned: AbortController;
  /** Null until it is created. */
  id: string | null;
}

/**
 * The creates whose clients have given them a key. A key is known while its create runs and as long as its sandbox is there, so
 * the number of keys stays near the number of sandboxes.
 */
export class IdempotentCreates {
  readonly #known = new Map<string, KnownCreate>();
  readonly #find: (client: string, id: string) => RemoteSandboxRecord | null;

  /** `find` gives the record of a sandbox, or null once it has ended. */
  constructor(find: (client: string, id: string) => RemoteSandboxRecord | null) {
    this.#find = find;
  }

  /** How many keys are known, those included whose sandbox has ended since the last create. */
  get size(): number {
    return this.#known.size;
  }

  /**
   * Gives the sandbox that the key has already, or creates one. The create goes on as long as one of the requests with its key
   * waits for it. Errors: a refusal with 409 for another body; those of `create`; the signal's reason, and if nobody else waits, nothing
   * is left then.
   */
  async run(
    { client, key, body, signal }: KeyedCreate,
    create: (signal: AbortSignal, key: KnownKey) => Promise<RemoteSandboxRecord>,
  ): Promise<RemoteSandboxRecord> {
    const place = placeOf(client, key);
    const bodyHash = hashOf(body);
    for (;;) {
      signal.throwIfAborted();
      this.#forgetEnded();
      const known = this.#known.get(place);
      if (known === undefined) {
        const begun = this.#begin(place, bodyHash, (until) => create(until, { key, bodyHash }));
        return await waitFor(begun, signal);
      }
      // It is being undone, and its key is free after that.
      if (known.abandoned.signal.aborted) await beforeAbort(settled(known.created), signal);
      else if (known.bodyHash !== bodyHash) throw otherBody();
      else {
        const record = await waitFor(known, signal);
        // It may have changed since it was created.
        return this.#find(client, record.id) ?? record;
      }
    }
  }

  /** Knows the key of a sandbox that an earlier service has created. */
  restore(client: string, { key, bodyHash }: KnownKey, record: RemoteSandboxRecord): void {
    const created = Promise.resolve(record);
    const known = { bodyHash, created, waitingCount: 0, abandoned: new AbortController(), id: record.id };
    this.#known.set(placeOf(client, key), known);
  }

  #begin(
    place: string,
    bodyHash: string,
    create: (signal: AbortSignal) => Promise<RemoteSandboxRecord>,
  ): KnownCreate {
    const abandoned = new AbortController();
    const created = create(abandoned.signal);
    const known: KnownCreate = { bodyHash, abandoned, created, waitingCount: 0, id: null };
    this.#known.set(place, known);
    // Before anybody who waits for it goes on.
    created.then(
      ({ id }) => {
        known.id = id;
      },
      () => this.#known.delete(place),
    );
    return known;
  }

  #forgetEnded(): void {
    for (const [place, { id }] of this.#known)
      if (id !== null && this.#find(clientOf(place), id) === null) this.#known.delete(place);
  }
}

async function waitFor(known: KnownCreate, signal: AbortSignal): Promise<RemoteSandboxRecord> {
  known.waitingCount++;
  try {
    return await beforeAbort(known.created, signal);
  } catch (error) {
    const isLast = known.waitingCount === 1;
    if (signal.aborted && known.id === null && isLast) {
      known.abandoned.abort(signal.reason);
      await settled(known.created);
    }
    throw error;
  } finally {
    known.waitingCount--;
  }
}

async function settled(promise: Promise<unknown>): Promise<void> {
  await promise.catch(() => undefined);
}

function placeOf(client: string, key: string): string {
  return JSON.stringify([client, key]);
}

function clientOf(place: string): string {
  const [client] = JSON.parse(place) as [string, string];
  return client;
}

/** The same for bodies that differ only in the order of their fields. */
function hashOf(body: unknown): string {
  const sorted = JSON.stringify(body, (_name, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
      : value,
  );
  return createHash("sha256").update(sorted).digest("base64");
}

function otherBody(): Refusal {
  return new Refusal("the Idempotency-Key was used for a sandbox with another body", {
    status: 409,
    code: "usage.invalid",
    hint: "send the same body as with the first request, or another key",
  });
}
