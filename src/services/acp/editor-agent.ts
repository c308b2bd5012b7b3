import { posix } from "node:path";
import {
  type AgentApp,
  type AgentContext,
  type AuthenticateRequest,
  type AuthMethod,
  agent,
  type InitializeRequest,
  type InitializeResponse,
  type McpServer,
  methods,
  type NewSessionResponse,
  PROTOCOL_VERSION,
} from "@agentclientprotocol/sdk";
import type { HostProcesses } from "../../lib/owner.js";
import { type ClientFeatures, clientLink, featuresOf } from "./client-link.js";
import { listSessions } from "./past-sessions.js";
import { invalidParams, invalidRequest, requestError } from "./rpc-error.js";
import { availableCommands } from "./session/command-in.js";
import type { EditorSession } from "./session/editor-session.js";
import type { SessionList } from "./session-list.js";
import type { SessionOpener } from "./session-opener.js";

export interface EditorAgentOptions {
  opener: SessionOpener;
  sessions: SessionList;
  version: string;
  processes: HostProcesses;
}

const { agent: names } = methods;

const MAX_PATH_CHARS = 4096;
const MAX_DIRECTORIES = 50;
const MAX_SERVERS = 50;

/** The methods of the protocol, for one client. */
export function editorAgent(options: EditorAgentOptions): AgentApp {
  const client = new ConnectedClient(options);
  const { sessions, opener, processes } = options;
  return agent({ name: "brig" })
    .onRequest(names.initialize, ({ params }) => client.initialize(params))
    .onRequest(
      names.authenticate,
      failing(({ params, signal, client: peer }) => client.logIn(params, { signal, peer })),
    )
    .onRequest(
      names.session.new,
      failing(({ params, client: peer }) => client.openNew(params, peer)),
    )
    .onRequest(
      names.session.load,
      failing(({ params, client: peer }) => client.openEarlier(params, { peer, replays: true })),
    )
    .onRequest(
      names.session.resume,
      failing(({ params, client: peer }) => client.openEarlier(params, { peer, replays: false })),
    )
    .onRequest(
      names.session.list,
      failing(({ params }) => listSessions(params, { home: opener.home, processes })),
    )
    .onRequest(
      names.session.close,
      failing(async ({ params }) => {
        await sessions.closeSession(params.sessionId);
        return {};
      }),
    )
    .onRequest(
      names.session.delete,
      failing(async ({ params: { sessionId } }) => {
        if (sessions.has(sessionId)) await sessions.closeSession(sessionId);
        await opener.deleteSession(sessionId);
        return {};
      }),
    )
    .onRequest(
      names.session.prompt,
      failing(({ params, signal }) => sessions.get(params.sessionId).prompt(params.prompt, signal)),
    )
    .onRequest(
      names.session.setMode,
      failing(async ({ params }) => {
        await sessions.get(params.sessionId).setMode(params.modeId);
        return {};
      }),
    )
    .onRequest(
      names.session.setConfigOption,
      failing(async ({ params: { sessionId, configId, value } }) => ({
        configOptions: await sessions.get(sessionId).setConfigOption(configId, value),
      })),
    )
    .onNotification(names.session.cancel, ({ params }) => {
      if (sessions.has(params.sessionId)) sessions.get(params.sessionId).cancel();
    });
}

/** Turns every error of a method into the error that the client is sent. */
function failing<Context, Result>(
  method: (context: Context) => Promise<Result>,
): (context: Context) => Promise<Result> {
  return async (context) => {
    try {
      return await method(context);
    } catch (error) {
      throw requestError(error);
    }
  };
}

interface Place {
  cwd: string;
  additionalDirectories?: readonly string[] | undefined;
  mcpServers?: readonly McpServer[] | undefined;
}

/** Answers the methods that depend on what the client said it can do when it connected. */
class ConnectedClient {
  readonly #options: EditorAgentOptions;
  #features: ClientFeatures | null = null;

  constructor(options: EditorAgentOptions) {
    this.#options = options;
  }

  /** brig speaks one version of the protocol, and answers with it whatever version the client asks for. */
  initialize({ clientCapabilities }: InitializeRequest): InitializeResponse {
    if (this.#features !== null) throw invalidRequest("initialize was sent already");
    this.#features = featuresOf(clientCapabilities);
    return {
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: "brig", title: "brig", version: this.#options.version },
      agentCapabilities: {
        loadSession: true,
        promptCapabilities: { image: true, audio: false, embeddedContext: true },
        mcpCapabilities: { http: true, sse: false },
        auth: {},
        sessionCapabilities: { list: {}, resume: {}, close: {}, delete: {}, additionalDirectories: {} },
      },
      authMethods: authMethods(this.#features),
    };
  }

  async logIn(
    { methodId, _meta }: AuthenticateRequest,
    { signal, peer }: { signal: AbortSignal; peer: AgentContext },
  ): Promise<object> {
    const { login } = this.#options.opener;
    switch (methodId) {
      case BROWSER: {
        await login.withBrowser({ signal, show: (url) => this.#showUrl(url, peer) });
        return {};
      }
      case API_KEY:
        await login.withApiKey(apiKeyIn(_meta), { signal });
        return {};
      default:
        throw invalidParams(`there is no way to log in ${JSON.stringify(methodId.slice(0, 100))}`);
    }
  }

  async openNew(place: Place, peer: AgentContext): Promise<NewSessionResponse> {
    const session = await this.#open(place, { resume: null, peer });
    return { sessionId: session.id, ...stateOf(session) };
  }

  async openEarlier(
    { sessionId, ...place }: Place & { sessionId: string },
    { peer, replays }: { peer: AgentContext; replays: boolean },
  ): Promise<ReturnType<typeof stateOf>> {
    const session = await this.#open(place, { resume: sessionId, peer });
    if (replays) await session.replay();
    return stateOf(session);
  }

  async #open(
    place: Place,
    { resume, peer }: { resume: string | null; peer: AgentContext },
  ): Promise<EditorSession> {
    const { sessions } = this.#options;
    const link = clientLink(peer, this.#features ?? featuresOf(undefined));
    const session = await sessions.open({ ...checkedPlace(place), resume }, link);
    session.sendLater({
      sessionUpdate: "available_commands_update",
      availableCommands: availableCommands(session.commands),
    });
    return session;
  }

  async #showUrl(url: URL, peer: AgentContext): Promise<void> {
    if (this.#features?.opensUrls !== true) return;
    // The answer does not matter: the login succeeds when the browser calls brig back, and else it times out.
    void peer
      .request(methods.client.elicitation.create, {
        mode: "url",
        requestId: peer.requestId ?? null,
        elicitationId: url.searchParams.get("state") ?? url.href,
        url: url.href,
        message: "Log in to the provider of the model.",
      })
      .catch(() => undefined);
  }
}

const BROWSER = "chatgpt";
const API_KEY = "api-key";

function authMethods({ hasLoginTerminal }: ClientFeatures): AuthMethod[] {
  const inTerminal: AuthMethod = {
    type: "terminal",
    id: "brig-login",
    name: "brig login",
    description: "Log in with ChatGPT in a terminal.",
    args: ["--login"],
  };
  return [
    {
      id: BROWSER,
      name: "ChatGPT",
      description:
        "Log in with ChatGPT in a browser on this machine. Or run brig login in a terminal, or set OPENAI_API_KEY for brig.",
    },
    {
      id: API_KEY,
      name: "API key",
      description: "Store a key of the OpenAI API, as brig login --api-key does.",
      _meta: { "api-key": { provider: "openai" } },
    },
    ...(hasLoginTerminal ? [inTerminal] : []),
  ];
}

function apiKeyIn(meta: AuthenticateRequest["_meta"]): string {
  const given = meta?.["api-key"];
  const key = typeof given === "object" && given !== null && "apiKey" in given ? given.apiKey : undefined;
  if (typeof key === "string") return key;
  throw invalidParams(
    'the key is missing: send it as _meta["api-key"].apiKey, or run brig login --api-key in a terminal',
  );
}

function stateOf(session: EditorSession) {
  return { modes: session.modes, configOptions: session.configOptions };
}

function checkedPlace({ cwd, additionalDirectories = [], mcpServers = [] }: Place) {
  for (const path of [cwd, ...additionalDirectories])
    if (!posix.isAbsolute(path) || path.length > MAX_PATH_CHARS || path.includes("\0"))
      throw invalidParams(`${JSON.stringify(path.slice(0, 200))} is not an absolute path`);
  if (additionalDirectories.length > MAX_DIRECTORIES)
    throw invalidParams(`a session has at most ${MAX_DIRECTORIES} additional directories`);
  if (mcpServers.length > MAX_SERVERS)
    throw invalidParams(`a session has at most ${MAX_SERVERS} MCP servers of its client`);
  return { cwd, additionalDirectories, mcpServers };
}
