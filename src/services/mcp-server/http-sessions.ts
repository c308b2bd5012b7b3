import { randomUUID } from "node:crypto";
import { isInitializeRequest, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { HttpRefusal } from "./http-refusal.js";
import { ErrorCode } from "./incoming-message.js";
import { allEnded, type OpenClient, type ServedClient } from "./served-client.js";

export interface SessionLimits {
  /** Sessions at the same time. Each client of the protocol of 2025 has one; later clients have none. */
  maxSessions: number;
  /** A session ends when its client has been silent for so many milliseconds. */
  idleMs: number;
}

/** An answer to a request. Call `done` once the client has received all of it, or has gone. */
export type SessionAnswer =
  | { kind: "answer"; answer: Response; done: () => void }
  | { kind: "refused"; refusal: HttpRefusal };

interface Session {
  transport: WebStandardStreamableHTTPServerTransport;
  client: ServedClient;
  /** Requests whose answers are not complete. */
  open: number;
  idle: NodeJS.Timeout | undefined;
}

const NOT_FOUND = -32001;

/** The sessions of clients that begin with `initialize`. */
export class HttpSessions {
  readonly #openClient: OpenClient;
  readonly #limits: SessionLimits;
  readonly #sessions = new Map<string, Session>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(openClient: OpenClient, limits: SessionLimits) {
    this.#openClient = openClient;
    this.#limits = limits;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** `body` is the parsed body of a POST. */
  async answer(request: Request, body: unknown): Promise<SessionAnswer> {
    const id = request.headers.get("mcp-session-id");
    if (id === null && isInitializeRequest(body)) return await this.#begin(request, body);
    if (id === null) return refused(400, "the header Mcp-Session-Id is missing: send initialize first");
    const session = this.#sessions.get(id);
    // By the protocol, a client that receives 404 begins a new session.
    if (session === undefined) return refused(404, "there is no such session, or it has ended", NOT_FOUND);
    return await this.#ask(id, session, { request, body });
  }

  /** Resolves when every session has ended. Rejects, also after they all have, if one could not end cleanly. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const open = [...this.#sessions].map(([id, session]) => this.#endSession(id, session));
    await allEnded([...open, ...this.#ending]);
  }

  async #begin(request: Request, body: unknown): Promise<SessionAnswer> {
    if (this.#isClosed) return refused(503, "the server is closing");
    if (this.#sessions.size >= this.#limits.maxSessions)
      return refused(503, `${this.#limits.maxSessions} sessions are open already: end one of them first`);
    const id = randomUUID();
    const client = this.#openClient({ isShared: false });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => this.#endSession(id, session),
    });
    const session: Session = { transport, client, open: 0, idle: undefined };
    this.#sessions.set(id, session);
    try {
      await client.createServer().connect(transport);
      const answered = await this.#ask(id, session, { request, body });
      // `initialize` was refused: the client has not received the session's id, and could never end it.
      if (transport.sessionId === undefined) await this.#endSession(id, session);
      return answered;
    } catch (error) {
      await this.#endSession(id, session);
      throw error;
    }
  }

  async #ask(
    id: string,
    session: Session,
    { request, body }: { request: Request; body: unknown },
  ): Promise<SessionAnswer> {
    session.open += 1;
    clearTimeout(session.idle);
    const done = () => {
      session.open -= 1;
      if (session.open > 0 || this.#sessions.get(id) !== session) return;
      session.idle = setTimeout(() => {
        // Nobody waits for this end, and its failure must not end the service of the other clients.
        this.#endSession(id, session).catch(() => undefined);
      }, this.#limits.idleMs);
    };
    try {
      const parsed = request.method === "POST" ? { parsedBody: body } : {};
      return { kind: "answer", answer: await session.transport.handleRequest(request, parsed), done };
    } catch (error) {
      done();
      throw error;
    }
  }

  /** Resolves when everything that the client has started has ended. */
  async #endSession(id: string, session: Session): Promise<void> {
    if (!this.#sessions.delete(id)) return;
    clearTimeout(session.idle);
    const ending = session.transport.close().then(() => session.client.close());
    this.#ending.add(ending);
    await ending.finally(() => this.#ending.delete(ending));
  }
}

function refused(status: number, reason: string, code: number = ErrorCode.refused): SessionAnswer {
  return { kind: "refused", refusal: { status, reason, code } };
}
