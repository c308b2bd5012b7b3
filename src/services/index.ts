// The door of the services: what editors, MCP clients, Codex and HTTP clients are served with. Other parts import from here only.

export { serveAcp } from "./acp/serve-acp.js";
export type {
  Login,
  PreparedSession,
  RequestedServer,
  SessionCommand,
  SessionOpener,
  SessionRequest,
} from "./acp/session-opener.js";
export { fenced } from "./acp/updates/shown-text.js";
export { serveStdio } from "./exec-server/serve-stdio.js";
export { serveWebSocket } from "./exec-server/serve-websocket.js";
export { openCodexClient } from "./mcp-server/codex/open-codex-client.js";
export { prepareThread } from "./mcp-server/codex/prepare-thread.js";
export { ThreadList } from "./mcp-server/codex/thread-list.js";
export { serveMcpHttp } from "./mcp-server/serve-http.js";
export { serveMcpStdio } from "./mcp-server/serve-stdio.js";
export type { OpenClient } from "./mcp-server/served-client.js";
export { serveTools } from "./mcp-server/tools/serve-tools.js";
export type { BrigClientOptions, ServedTask } from "./serve/client/brig-client.js";
export { BrigClient } from "./serve/client/brig-client.js";
export type {
  RemoteCallOptions,
  RemoteFiles,
  RemoteSandbox,
  RemoteStreamOptions,
} from "./serve/client/client-types.js";
export { MemoryBudget } from "./serve/http/memory-budget.js";
export type { ServedClient } from "./serve/http/serve-http.js";
export { serveHttp } from "./serve/http/serve-http.js";
export type { ServiceOptions } from "./serve/service-calls.js";
export { openService } from "./serve/service-calls.js";
export { openApiDescription } from "./serve/wire/openapi.js";
export type {
  Episode,
  EpisodeOptions,
  RemoteExit,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  ServiceHealth,
} from "./serve/wire/schemas.js";
