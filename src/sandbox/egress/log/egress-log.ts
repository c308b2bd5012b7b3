import type { EgressAttempt } from "../attempt.js";
import { type EgressEntry, entryOf } from "./egress-entry.js";

/** Different attempts of one session that are kept apart. All others are counted by their outcome. */
export const MAX_KINDS = 1000;
/** Entries of one session, besides those that count what differs too much. */
export const MAX_ENTRIES = 5000;

interface Kind {
  /** How many attempts are in entries already. */
  reported: number;
  /** Attempts that are in no entry yet; null for none. */
  pending: EgressEntry | null;
}

/**
 * Turns attempts into entries, as many as fit: a program may make a million attempts. The first of each kind is an
 * entry at once. Equal ones that follow are counted, and are an entry whenever their number has doubled, and at `flush`.
 */
export class EgressLog {
  readonly #onEntry: (entry: EgressEntry) => void;
  readonly #kinds = new Map<string, Kind>();
  #entries = 0;

  constructor(onEntry: (entry: EgressEntry) => void) {
    this.#onEntry = onEntry;
  }

  add(attempt: EgressAttempt): void {
    const { entry, key } = this.#fitted(entryOf(attempt));
    const kind = this.#kinds.get(key) ?? { reported: 0, pending: null };
    this.#kinds.set(key, kind);
    kind.pending = kind.pending === null ? entry : together(kind.pending, entry);
    if (kind.pending.count >= kind.reported) this.#report(kind);
  }

  /** Makes entries of everything that was only counted so far. */
  flush(): void {
    for (const kind of this.#kinds.values()) this.#report(kind);
  }

  /** Reduces an entry to its outcome if there are too many kinds or too many entries. */
  #fitted(entry: EgressEntry): { entry: EgressEntry; key: string } {
    const key = keyOf(entry);
    if (this.#entries < MAX_ENTRIES && (this.#kinds.has(key) || this.#kinds.size < MAX_KINDS))
      return { entry, key };
    const counted: EgressEntry = {
      ...entry,
      ...{ callId: null, program: null, way: null, host: null, port: null, method: null, path: null },
      ...{ reason: null, message: null, rule: null },
    };
    return { entry: counted, key: keyOf(counted) };
  }

  #report(kind: Kind): void {
    const { pending } = kind;
    if (pending === null) return;
    kind.pending = null;
    kind.reported += pending.count;
    this.#entries++;
    this.#onEntry(pending);
  }
}

/** Equal entries as one, in the order of the first of them. */
export function mergedEntries(entries: Iterable<EgressEntry>): EgressEntry[] {
  const kinds = new Map<string, EgressEntry>();
  for (const entry of entries) {
    const key = keyOf(entry);
    const earlier = kinds.get(key);
    kinds.set(key, earlier === undefined ? entry : together(earlier, entry));
  }
  return [...kinds.values()];
}

function together(one: EgressEntry, other: EgressEntry): EgressEntry {
  return {
    ...one,
    startedAtMs: Math.min(one.startedAtMs, other.startedAtMs),
    count: one.count + other.count,
    bytesOut: one.bytesOut + other.bytesOut,
    bytesIn: one.bytesIn + other.bytesIn,
    durationMs: one.durationMs + other.durationMs,
  };
}

/** Equal for entries that differ only in numbers. No text of an entry has a line break. */
function keyOf(entry: EgressEntry): string {
  const { phase, callId, program, way, host, port, method, path, outcome, reason, message, rule } = entry;
  return [phase, callId, program, way, host, port, method, path, outcome, reason, message, rule].join("\n");
}
