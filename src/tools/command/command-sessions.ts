import type { ToolCallOptions } from "../tool.js";
import type { ToolProcess } from "../tool-sandbox.js";
import { CommandSession } from "./command-session.js";

/** Returns an integer from `min` up to but not including `max`. */
export type RandomInteger = (min: number, max: number) => number;

const FIRST_ID = 1000;
const LAST_ID = 99_999;
const MAX_SESSIONS = 64;
/** The number of recently used sessions that are never pruned, beside the new one. */
const PROTECTED_SESSIONS = 8;
const WARNING_SESSIONS = 60;

export class CommandSessions {
  readonly #sessions = new Map<number, CommandSession>();
  readonly #random: RandomInteger;
  #uses = 0;

  constructor(random: RandomInteger) {
    this.#random = random;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Adds a process, and ends another one if there are too many. */
  async add(process: ToolProcess, onActivity: ToolCallOptions["onActivity"]): Promise<CommandSession> {
    const session = new CommandSession(this.#freeId(), process, onActivity);
    this.#sessions.set(session.id, session);
    this.#touch(session);
    // The new session is counted before the wait, since other calls may add sessions meanwhile.
    if (this.#sessions.size > MAX_SESSIONS) await this.#prune();
    return session;
  }

  /** Also marks the session as used now. */
  find(id: number): CommandSession | undefined {
    const session = this.#sessions.get(id);
    if (session !== undefined) this.#touch(session);
    return session;
  }

  forget(session: CommandSession): void {
    this.#sessions.delete(session.id);
  }

  /** A warning for a model with too many open processes, else null. */
  advice(): string | null {
    if (this.count < WARNING_SESSIONS) return null;
    return (
      `Warning: The maximum number of unified exec processes you can keep open is ${WARNING_SESSIONS} and you currently have ` +
      `${this.count} processes open. Reuse older processes or close them to prevent automatic pruning of old processes`
    );
  }

  /** Ends every process. Ignores errors: if the sandbox is gone, so are the processes. */
  async close(): Promise<void> {
    const running = [...this.#sessions.values()].filter(({ exit }) => exit === null);
    this.#sessions.clear();
    await Promise.allSettled(running.map((session) => session.end()));
  }

  async #prune(): Promise<void> {
    const byUse = [...this.#sessions.values()].toSorted((a, b) => a.lastUse - b.lastUse);
    const candidates = byUse.slice(0, -(PROTECTED_SESSIONS + 1));
    const victim = candidates.find(({ exit }) => exit !== null) ?? candidates[0];
    if (victim === undefined) return;
    this.forget(victim);
    if (victim.exit === null) await victim.end();
  }

  #touch(session: CommandSession): void {
    session.lastUse = ++this.#uses;
  }

  #freeId(): number {
    for (;;) {
      const id = this.#random(FIRST_ID, LAST_ID + 1);
      if (!this.#sessions.has(id)) return id;
    }
  }
}
