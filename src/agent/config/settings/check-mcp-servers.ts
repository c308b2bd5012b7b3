import { BrigError } from "../../../errors.js";
import type { Config, McpServerConfig } from "../config-schema.js";
import { formatKey, type KeyPath } from "../file/key-path.js";
import { nodeAt, type SettingTree, sourceAt } from "./setting-tree.js";
import { describeSource } from "./sources.js";

type ServerKey = keyof McpServerConfig;

const stdioKeys: readonly ServerKey[] = ["args", "env", "env_vars", "cwd", "sandbox", "image", "network"];
const httpKeys: readonly ServerKey[] = ["bearer_token_env_var", "http_headers", "env_http_headers"];
const ownContainerKeys: readonly ServerKey[] = ["image", "network"];

/**
 * Refuses MCP servers whose keys do not fit together. The layers are checked only once they are merged,
 * because a layer may have just a part of a server, such as `-c mcp_servers.docs.enabled=false`. Error:
 * `config.invalid`.
 */
export function checkMcpServers({ mcp_servers: servers }: Config, tree: SettingTree): void {
  for (const [name, server] of Object.entries(servers)) {
    const path = ["mcp_servers", name];
    const refuse = (key: KeyPath, what: string, hint: string): never => {
      const where = describeSource(sourceAt(tree, key));
      throw new BrigError(`${where}: ${formatKey(key)} ${what}`, { code: "config.invalid", hint });
    };
    const firstSet = (keys: readonly ServerKey[]) =>
      keys.map((key) => [...path, key]).find((key) => nodeAt(tree, key) !== undefined);
    const { command, url, sandbox } = server;
    if (command === undefined && url === undefined)
      refuse(path, "has neither a command nor a url", "a stdio server needs command, an HTTP server url");
    if (command !== undefined && url !== undefined)
      refuse([...path, "url"], "excludes command", "leave one of them out");
    const misplaced = firstSet(url === undefined ? httpKeys : stdioKeys);
    if (misplaced !== undefined)
      refuse(misplaced, `is for ${url === undefined ? "an HTTP" : "a stdio"} server`, "leave it out");
    const needless = sandbox === "own" ? undefined : firstSet(ownContainerKeys);
    if (needless !== undefined)
      refuse(needless, "is for a server in a container of its own", 'leave it out, or set sandbox = "own"');
  }
}
