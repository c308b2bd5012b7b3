import { isDeepStrictEqual } from "node:util";
import { patch } from "@decimalturn/toml-patch";
import { type BrigError, invalidUsage } from "../../errors.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { isTable, parseToml, type Table } from "./toml-document.js";

/**
 * The text of a configuration file with one value changed, or removed if it is undefined. All else in it stays as it is, comments too. Errors:
 * `config.invalid` for a file with mistakes; `usage.invalid` for a key within something that is no table, or where only a person can edit the file.
 */
export function editedConfig(
  text: string,
  { file, path, value }: { file: string; path: KeyPath; value: unknown },
): string {
  const { table } = parseToml(text, file);
  const wanted = withValue(table, path, value);
  const edited = patch(text, wanted).replace(/(?<!\n)$/, "\n");
  if (isDeepStrictEqual(plain(parseToml(edited, file).table), plain(wanted))) return edited;
  throw invalidUsage(
    `\`${formatKey(path)}\` cannot be changed without changing more of ${file}`,
    "change it by hand: brig config edit",
  );
}

function withValue(table: Table, [key = "", ...rest]: KeyPath, value: unknown): Table {
  if (rest.length === 0) {
    const { [key]: _old, ...others } = table;
    return value === undefined ? others : { ...table, [key]: value };
  }
  const inner = Object.hasOwn(table, key) ? table[key] : undefined;
  if (inner === undefined && value === undefined) return table;
  if (inner !== undefined && !isTable(inner))
    throw invalidUsage(`\`${formatKey([key])}\` is no table`, "name a key that has a value of its own");
  return { ...table, [key]: withValue(inner ?? {}, rest, value) };
}

/** As JSON, since the parser makes objects without a prototype. */
function plain(table: Table): unknown {
  return JSON.parse(
    JSON.stringify(table, (_key, value) => (typeof value === "bigint" ? `${value}n` : value)),
  );
}

/** What `brig config init` writes: every line is a comment, so that it changes nothing. */
export const INITIAL_CONFIG = `# brig's configuration. Take the # away from a line to use it; brig config show prints what is in effect.

# The model, and how hard it thinks: minimal, low, medium, high.
# model = "gpt-5.2-codex"
# model_reasoning_effort = "medium"

# What commands may do: read-only, workspace-write, danger-full-access.
# sandbox_mode = "workspace-write"

# When a person is asked before a command runs: untrusted, on-request, on-failure, never.
# approval_policy = "on-request"

# The image of the sandboxes.
# container_image = "brig/base"

# In the mode workspace-write: other directories that may be written, and whether there is a network.
# [sandbox_workspace_write]
# writable_roots = ["/data"]
# network_access = false

# Another provider of models, chosen by model_provider = "local".
# [model_providers.local]
# name = "a server on this machine"
# base_url = "http://127.0.0.1:11434/v1"
# wire_api = "chat"

# A server whose tools the model gets.
# [mcp_servers.docs]
# command = "npx"
# args = ["-y", "some-mcp-server"]
`;

/** Error: `usage.invalid`. */
export function missingConfig(file: string): BrigError {
  return invalidUsage(`there is no ${file}`, "make one with: brig config init");
}
