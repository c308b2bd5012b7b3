import { beforeAbort } from "../../lib/time/before-abort.js";
import { TimeLimit } from "../../lib/time/time-limit.js";
import { type Shell, USUAL_SHELL } from "./environment-info.js";
import type { CommonOptions } from "./sandbox-set.js";
import { type Notifications, Session } from "./session.js";
import { invalidRequest, RpcError } from "./wire/messages.js";

/** The time for which Codex's own server waits for a client to come back. */
const RESUMABLE_MS = 30_000;
const MAX_SESSIONS = 32;
/** A client waits about ten seconds for its first answer. An image that has to be fetched takes longer. */
const SHELL_TIMEOUT_MS = 5000;
/** Codex's own code for a session that another connection has. */
const ALREADY_ATTACHED = -32_010;

export interface SessionListOptions {
  sandbox: CommonOptions;
  /** Directory in which the server was started. */
  directory: string;
  /** Whether a session waits for its client to come back; over standard input it cannot. */
  isResumable: boolean;
}

/** The sessions of a server. Close it to end what they run. */
export class SessionList {
  readonly #options: SessionListOptions;
  readonly #sessions = new Map<string, { session: Session; expiry: NodeJS.Timeout | undefined }>();
  readonly #closing = new Set<Promise<void>>();
  #shell: Promise<Shell> | undefined;

  constructor(options: SessionListOptions) {
    this.#options = options;
  }

  get directory(): string {
    return this.#options.directory;
  }

  /**
   * The shell of the image, which is the same for every session. If no sandbox for the server's directory can
   * be opened, or not soon enough, this is the shell that most images have. Error: the image has no shell.
   */
  async shell(session: Session): Promise<Shell> {
    // brig's own image has this shell, so there is no need to wait for a sandbox.
    if (this.#options.sandbox.image === undefined) return USUAL_SHELL;
    this.#shell ??= session.shell(this.directory);
    using limit = new TimeLimit(SHELL_TIMEOUT_MS);
    try {
      return await beforeAbort(this.#shell, limit.signal);
    } catch (error) {
      if (!limit.isOver) this.#shell = undefined;
      if (error instanceof RpcError) throw error;
      return USUAL_SHELL;
    }
  }

  /** A new session, or the one that the client had. Errors: a session that there is not, or that is in use. */
  attach(resumeId: string | null, notifications: Notifications): Session {
    const session = resumeId === null ? this.#add() : this.#resume(resumeId);
    session.connect(notifications);
    return session;
  }

  /** The client has gone. */
  detach(session: Session): void {
    session.disconnect();
    const entry = this.#sessions.get(session.id);
    if (entry === undefined) return;
    if (!this.#options.isResumable) this.#end(session);
    else entry.expiry = setTimeout(() => this.#end(session), RESUMABLE_MS);
  }

  /** Ends all sessions. Error: `engine.failed` when a container may be left. */
  async close(): Promise<void> {
    for (const { session, expiry } of this.#sessions.values()) {
      clearTimeout(expiry);
      this.#end(session);
    }
    const closed = await Promise.allSettled(this.#closing);
    for (const result of closed) if (result.status === "rejected") throw result.reason;
  }

  #add(): Session {
    if (this.#sessions.size >= MAX_SESSIONS)
      throw invalidRequest(`the server has ${MAX_SESSIONS} sessions already`);
    const session = new Session(this.#options.sandbox);
    this.#sessions.set(session.id, { session, expiry: undefined });
    return session;
  }

  #resume(id: string): Session {
    const entry = this.#sessions.get(id);
    if (entry === undefined) throw invalidRequest(`unknown session id ${id}`);
    if (entry.session.isConnected)
      throw new RpcError(`session ${id} is already attached to another connection`, {
        code: ALREADY_ATTACHED,
      });
    clearTimeout(entry.expiry);
    entry.expiry = undefined;
    return entry.session;
  }

  #end(session: Session): void {
    this.#sessions.delete(session.id);
    const closing = session.close();
    this.#closing.add(closing);
    // A failure stays, for `close` to report.
    closing.then(
      () => this.#closing.delete(closing),
      () => undefined,
    );
  }
}
