import type { McpServers } from "../../../tools/index.js";
import type { AgentSandbox } from "../../agent-sandbox.js";

/** The parent's sandbox, for an agent. `close` does nothing, because the parent closes it. */
export function borrowedSandbox(sandbox: AgentSandbox): AgentSandbox {
  return {
    id: sandbox.id,
    ...(sandbox.image === undefined ? {} : { image: sandbox.image }),
    proof: sandbox.proof,
    maskSecrets: sandbox.maskSecrets ?? null,
    files: sandbox.files,
    spawn: (argv, options) => sandbox.spawn(argv, options),
    close: () => Promise.resolve(undefined),
  };
}

/** The parent's MCP servers, for an agent. `close` does nothing, because the parent closes them. */
export function borrowedServers(servers: McpServers): McpServers {
  return {
    get servers() {
      return servers.servers;
    },
    ready: (options) => servers.ready(options),
    tools: () => servers.tools(),
    onToolsChanged: (listener) => servers.onToolsChanged(listener),
    call: (tool, args, options) => servers.call(tool, args, options),
    listResources: (server, options) => servers.listResources(server, options),
    listResourceTemplates: (server, options) => servers.listResourceTemplates(server, options),
    readResource: (server, uri, options) => servers.readResource(server, uri, options),
    close: () => Promise.resolve(),
  };
}
