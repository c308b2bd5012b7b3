import {
  type AgentContext,
  type ClientCapabilities,
  methods,
  type RequestPermissionRequest,
  type RequestPermissionResponse,
  type SessionUpdate,
} from "@agentclientprotocol/sdk";

/** The parts of a client that a session needs. */
export interface ClientLink {
  readonly features: ClientFeatures;
  /** Shows something in a session. Resolves when the client has room for the next update. Never rejects. */
  update(sessionId: string, update: SessionUpdate): Promise<void>;
  /** Rejects when the client answers with an error, when it is gone, and when the signal aborts. */
  askPermission(request: RequestPermissionRequest, signal: AbortSignal): Promise<RequestPermissionResponse>;
  /** Asks the person at the client. The answer is returned as the client sent it, unchecked. */
  elicit(request: object, signal: AbortSignal): Promise<unknown>;
}

/** Features that a client has announced. */
export interface ClientFeatures {
  /**
   * The client draws the output of commands as terminals. Not part of the protocol, but a convention of Zed.
   */
  showsTerminalOutput: boolean;
  asksQuestions: boolean;
  opensUrls: boolean;
  showsNotices: boolean;
  showsCompactions: boolean;
  /** The client can run `brig acp` in a terminal, where a person logs in. */
  hasLoginTerminal: boolean;
}

export function featuresOf(capabilities: ClientCapabilities | undefined): ClientFeatures {
  return {
    showsTerminalOutput: capabilities?._meta?.terminal_output === true,
    asksQuestions: capabilities?.elicitation?.form != null,
    opensUrls: capabilities?.elicitation?.url != null,
    showsNotices: capabilities?.session?.notices != null,
    showsCompactions: capabilities?.session?.compaction != null,
    hasLoginTerminal: capabilities?.auth?.terminal === true,
  };
}

export function clientLink(client: AgentContext, features: ClientFeatures): ClientLink {
  const waiting = (cancellationSignal: AbortSignal) => ({ cancellationSignal, stopWaitingOnCancel: true });
  return {
    features,
    async update(sessionId, update) {
      await client.notify(methods.client.session.update, { sessionId, update }).catch(() => undefined);
    },
    askPermission: async (request, signal) =>
      await client.request(methods.client.session.requestPermission, request, waiting(signal)),
    elicit: async (request, signal) =>
      await client.request<unknown, object>(methods.client.elicitation.create, request, waiting(signal)),
  };
}
