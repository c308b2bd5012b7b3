import { messageWithHint } from "../errors.js";
import { pause } from "../lib/time/pause.js";
import type { McpServers } from "../tools/index.js";
import type { AgentSandbox } from "./agent-sandbox.js";
import type { SessionSetting } from "./session/setting.js";
import type { AgentEvent } from "./turn/events.js";

/** Information for the function that opens MCP servers. */
export interface McpSession {
  /** The sandbox in which its commands run. It may still be starting. */
  sandbox: Promise<AgentSandbox>;
  setting: SessionSetting;
  /** Call this with what a server's sandbox left on the host, for the session's receipt. */
  onReceipt(receipt: unknown): void;
}

export function openServers(
  open: ((session: McpSession) => McpServers) | undefined,
  session: McpSession,
): SessionServers | null {
  return open === undefined ? null : new SessionServers(open(session));
}

/** A shorter wait is not worth a message. */
const PATIENCE_MS = 1000;

/** The MCP servers of a session. A session that gets another sandbox gets other servers, too. */
export class SessionServers {
  readonly servers: McpServers;
  /** The names of the servers whose failure has been reported. */
  readonly #reported = new Set<string>();

  constructor(servers: McpServers) {
    this.servers = servers;
  }

  /**
   * Waits until every server has started or failed, because a request to the model lists their tools. Emits a
   * warning for each server that failed, only once. Error: that of a required server.
   */
  async ready({ signal, emit }: { signal: AbortSignal; emit(event: AgentEvent): void }): Promise<void> {
    const over = new AbortController();
    const patience = pause(PATIENCE_MS, over.signal).then(
      () => emit({ kind: "mcp-servers-starting", servers: this.#starting() }),
      () => undefined,
    );
    try {
      await this.servers.ready({ signal });
    } finally {
      over.abort();
      await patience;
    }
    for (const { name, status, error } of this.servers.servers) {
      if (status !== "failed" || error === null || this.#reported.has(name)) continue;
      this.#reported.add(name);
      emit({ kind: "warning", message: messageWithHint(error) });
    }
  }

  #starting(): string[] {
    return this.servers.servers.filter(({ status }) => status === "starting").map(({ name }) => name);
  }
}
