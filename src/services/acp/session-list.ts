import type { McpServer, SessionUpdate } from "@agentclientprotocol/sdk";
import { afterLivedTime, type LivedTimer } from "../../lib/time/lived-time.js";
import { ImageResizer } from "../../tools/index.js";
import type { ClientLink } from "./client-link.js";
import { clientApprover } from "./questions/ask-permission.js";
import { clientUser } from "./questions/ask-user.js";
import { invalidRequest, unknownSession } from "./rpc-error.js";
import { EditorSession } from "./session/editor-session.js";
import type { SessionOpener } from "./session-opener.js";
import { noticeUpdate } from "./updates/notice.js";

const MAX_SESSIONS = 100;
/** Number of sandboxes that stay open for sessions without a running prompt. */
const MAX_IDLE_SANDBOXES = 8;
const MAX_RUNNING_PROMPTS = 32;
/** Number of MCP servers that all sessions may have together: each server may need a container. */
const MAX_SERVERS = 64;
const IDLE_MS = 30 * 60 * 1000;

export interface OpenRequest {
  cwd: string;
  additionalDirectories: readonly string[];
  mcpServers: readonly McpServer[];
  /** The id of the session to continue; null for a new one. */
  resume: string | null;
}

export interface SessionListOptions {
  opener: SessionOpener;
  /** Called when the client has stopped reading its updates. */
  onStuck(): void;
}

/** The open sessions of a connection. Closing the list ends everything that they run. */
export class SessionList {
  readonly #options: SessionListOptions;
  readonly #resizer = new ImageResizer();
  readonly #sessions = new Map<string, EditorSession>();
  /** Number of MCP servers that the editor has asked for, by session. */
  readonly #servers = new Map<string, number>();
  /** Sessions that are being opened or closed, so that `close` can wait for them. */
  readonly #changes = new Set<Promise<unknown>>();
  /** The requests that are being answered with a new session. They count towards the limits at once. */
  readonly #opening = new Set<OpenRequest>();
  #isClosed = false;
  #idleTimer: LivedTimer | null = null;

  constructor(options: SessionListOptions) {
    this.#options = options;
  }

  has(id: string): boolean {
    return this.#sessions.has(id);
  }

  /** Error: -32002 for a session that is not open. */
  get(id: string): EditorSession {
    const session = this.#sessions.get(id);
    if (session === undefined) throw unknownSession(id);
    return session;
  }

  /**
   * Opens a session. If it is open already, it is closed first. Errors: those of the opener; -32600 for too
   * many sessions or MCP servers, and while the session answers a prompt.
   */
  async open(request: OpenRequest, link: ClientLink): Promise<EditorSession> {
    if (this.#isClosed) throw invalidRequest("the connection is closing");
    if (request.resume !== null) await this.#closeEarlier(request.resume);
    if (this.#sessions.size + this.#opening.size >= MAX_SESSIONS)
      throw invalidRequest(`${MAX_SESSIONS} sessions are open already: close one first`);
    const opening = [...this.#opening, request].map(({ mcpServers }) => mcpServers.length);
    const servers = [...this.#servers.values(), ...opening].reduce((sum, count) => sum + count, 0);
    if (servers > MAX_SERVERS)
      throw invalidRequest(`the sessions would have more than ${MAX_SERVERS} MCP servers: close one first`);
    this.#opening.add(request);
    try {
      return await this.#follow(this.#open(request, link));
    } finally {
      this.#opening.delete(request);
    }
  }

  /** Ends what the session runs, and resolves when it has ended. */
  async closeSession(id: string): Promise<void> {
    const session = this.get(id);
    this.#sessions.delete(id);
    this.#servers.delete(id);
    await this.#follow(session.close());
  }

  /** Closes every session. Rejects with the first error, after all have been tried. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#idleTimer?.cancel();
    await Promise.allSettled([...this.#changes]);
    const sessions = [...this.#sessions.values()];
    this.#sessions.clear();
    const closed = await Promise.allSettled(sessions.map((session) => session.close()));
    for (const result of closed) if (result.status === "rejected") throw result.reason;
  }

  async #open(request: OpenRequest, link: ClientLink): Promise<EditorSession> {
    const { opener, onStuck } = this.#options;
    let session: EditorSession | null = null;
    const sessionId = () => session?.id ?? "";
    const warnings: SessionUpdate[] = [];
    const prepared = await opener.prepare({
      ...request,
      approver: clientApprover(link, { sessionId, beforeAsking: async () => await session?.sent() }),
      user: link.features.asksQuestions ? clientUser(link, { sessionId }) : undefined,
      onWarning(message) {
        const notice = noticeUpdate({ title: "a warning of brig", description: message }, link.features);
        if (session === null) warnings.push(notice);
        else session.send(notice);
      },
    });
    if (this.#isClosed || this.#sessions.has(prepared.options.threadId)) {
      prepared.options.session?.close();
      throw invalidRequest(this.#isClosed ? "the connection is closing" : "the session is open already");
    }
    try {
      session = new EditorSession({
        prepared,
        link,
        resizer: this.#resizer,
        beforeStart: (starting) => this.#makeRoom(starting),
        onStuck,
      });
    } catch (error) {
      prepared.options.session?.close();
      throw error;
    }
    this.#sessions.set(session.id, session);
    this.#servers.set(session.id, request.mcpServers.length);
    session.sendLater(...warnings);
    // Starting the sandbox now saves the first prompt the wait, but only where no other session must give
    // way.
    if (this.#idle().length < MAX_IDLE_SANDBOXES && this.#busyBeside(session) < MAX_RUNNING_PROMPTS)
      session.start();
    if (this.#idleTimer === null) this.#watchIdle();
    return session;
  }

  async #closeEarlier(id: string): Promise<void> {
    const session = this.#sessions.get(id);
    if (session?.isBusy === true)
      throw invalidRequest("the session is open and busy: cancel its prompt, or wait until it has ended");
    if (session !== undefined) await this.closeSession(id);
  }

  /**
   * Called before a sandbox starts. If too many sessions have a sandbox without using it, those that were
   * used least recently lose theirs. Error: -32600 if too many prompts are running.
   */
  #makeRoom(starting: EditorSession): void {
    if (this.#busyBeside(starting) >= MAX_RUNNING_PROMPTS)
      throw invalidRequest(`${MAX_RUNNING_PROMPTS} prompts are running already: wait until one has ended`);
    const idle = this.#idle().filter((session) => session !== starting);
    for (const session of idle.slice(0, Math.max(0, idle.length + 1 - MAX_IDLE_SANDBOXES)))
      this.#rest(session);
  }

  /** Number of other sessions that are answering a prompt. */
  #busyBeside(session: EditorSession): number {
    return [...this.#sessions.values()].filter((other) => other !== session && other.isBusy).length;
  }

  #watchIdle(): void {
    this.#idleTimer = afterLivedTime(IDLE_MS / 4, () => {
      const before = performance.now() - IDLE_MS;
      for (const session of this.#idle()) if (session.lastUsed < before) this.#rest(session);
      this.#watchIdle();
    });
  }

  /** The sessions that have a sandbox and do nothing, the one that was used least recently first. */
  #idle(): EditorSession[] {
    return [...this.#sessions.values()]
      .filter((session) => session.hasSandbox && !session.isBusy)
      .toSorted((a, b) => a.lastUsed - b.lastUsed);
  }

  /**
   * Ends the sandbox of an idle session. That fails if the session is closed or gets a prompt meanwhile,
   * which is no problem.
   */
  #rest(session: EditorSession): void {
    void this.#follow(session.rest()).catch(() => undefined);
  }

  async #follow<Result>(change: Promise<Result>): Promise<Result> {
    this.#changes.add(change);
    try {
      return await change;
    } finally {
      this.#changes.delete(change);
    }
  }
}
