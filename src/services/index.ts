// The door of the services: what editors, MCP clients, Codex and HTTP clients are served with. Other parts import from here only.

export { defineAcp } from "./acp/acp-command.js";
export type { Login, SessionCommand, TerminalParts } from "./acp/session-opener.js";
export { fenced } from "./acp/updates/shown-text.js";
export { defineExecServer } from "./exec-server/exec-server-command.js";
export { defineMcpServer } from "./mcp-server/mcp-server-command.js";
export type { BrigClientOptions, ServedTask } from "./serve/client/brig-client.js";
export { BrigClient } from "./serve/client/brig-client.js";
export type {
  RemoteCallOptions,
  RemoteFiles,
  RemoteSandbox,
  RemoteStreamOptions,
} from "./serve/client/client-types.js";
export { defineServe } from "./serve/serve-command.js";
export { openApiDescription } from "./serve/wire/openapi.js";
export type {
  Episode,
  EpisodeOptions,
  RemoteExit,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  ServiceHealth,
} from "./serve/wire/schemas.js";
export { defineWrap } from "./wrap/wrap-command.js";
