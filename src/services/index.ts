// The door of the services: what editors, MCP clients, Codex and HTTP clients are served with. Other parts import from here only.

export { defineAcp } from "./acp/acp-command.js";
export type { Login, SessionCommand, TerminalParts } from "./acp/session-opener.js";
export { fenced } from "./acp/updates/shown-text.js";
export { defineServe } from "./e2b/define-serve.js";
export { defineExecServer } from "./exec-server/exec-server-command.js";
export { CommandConnection } from "./lasting/client/command-connection.js";
export { connectSandbox } from "./lasting/client/connect-sandbox.js";
export { ConnectedProcess, connectedCommand } from "./lasting/client/connected-process.js";
export type { LastingSandbox, LastingWorkspace } from "./lasting/client/lasting-sandbox.js";
export { lastingPlace, lastingSandbox, lastingWorkspace } from "./lasting/client/lasting-sandbox.js";
export { OwnerClient, passFrames, sandboxPath, unreachable } from "./lasting/client/owner-client.js";
export type { StartingOwner } from "./lasting/client/start-owner.js";
export { hasOwner, startOwner } from "./lasting/client/start-owner.js";
export { hostTreeBytes, readHostTree, writeHostTree } from "./lasting/files/host-tree.js";
export type { LastingRecord } from "./lasting/home/lasting-records.js";
export { findLasting, logFile, readLasting, requireName } from "./lasting/home/lasting-records.js";
export { serviceSocket, socketProblem } from "./lasting/home/service-socket.js";
export { endedError } from "./lasting/owner/ended-error.js";
export type { LastingPlace, OpenedLasting } from "./lasting/owner/lasting-set.js";
export { UNLIMITED_MS } from "./lasting/owner/lasting-set.js";
export { serveOwner } from "./lasting/owner/serve-owner.js";
export { openSealKey, watchOwner } from "./lasting/owner/watch-owner.js";
export type { ConnectedCommand, UpRequest } from "./lasting/wire/messages.js";
export { asBrigError, asSentError } from "./lasting/wire/sent-error.js";
export { defineMcpServer } from "./mcp-server/mcp-server-command.js";
export type { ServedTask } from "./serve/client/brig-client.js";
export { BrigClient } from "./serve/client/brig-client.js";
export type {
  RemoteCallOptions,
  RemoteDiffOptions,
  RemoteFiles,
  RemoteProcess,
  RemoteSandbox,
  RemoteSnapshot,
  RemoteStreamOptions,
} from "./serve/client/client-types.js";
export type { BrigClientOptions } from "./serve/client/http-calls.js";
export { TOP } from "./serve/files/sandbox-archive.js";
export type { RemoteEgress, RemoteProof, RemoteReceipt } from "./serve/wire/account-schemas.js";
export { openApiDescription } from "./serve/wire/openapi.js";
export type { RemoteProcessRecord } from "./serve/wire/process-schemas.js";
export type {
  Episode,
  EpisodeOptions,
  RemoteExit,
  RemoteSandboxOptions,
  RemoteSandboxRecord,
  ServiceHealth,
} from "./serve/wire/schemas.js";
export { defineWrap } from "./wrap/wrap-command.js";
