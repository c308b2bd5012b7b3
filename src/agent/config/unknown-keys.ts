import { z } from "zod";
import { suggest } from "../../lib/suggest.js";
import { configSchema } from "./config-schema.js";
import { formatKey, type KeyPath } from "./key-path.js";
import { isTree, type SettingTree, sourceAt } from "./settings/setting-tree.js";
import { describeSource } from "./settings/sources.js";
import { memberOf, unwrapped } from "./wrong-value.js";

const SHOWN_KEYS = 12;

/** A warning for each unknown key, with its place and the key that was probably meant. */
export function unknownKeyWarnings(tree: SettingTree): string[] {
  return unknownKeys(configSchema, tree, []).map(({ path, meant }) => {
    const hint = meant === null ? "" : `; did you mean \`${meant}\`?`;
    return `${describeSource(sourceAt(tree, path))}: unknown key \`${formatKey(path)}\`${hint}`;
  });
}

/** One sentence for all keys of Codex that brig ignores, except for `notice`, which Codex sets by itself. */
export function unusedKeyNotes(trees: readonly SettingTree[]): string[] {
  const names = new Set(trees.flatMap((tree) => unusedKeys(tree)));
  names.delete("notice");
  if (names.size === 0) return [];
  const shown = [...names].slice(0, SHOWN_KEYS).map((name) => `\`${name}\``);
  const more = names.size > SHOWN_KEYS ? ` and ${names.size - SHOWN_KEYS} more` : "";
  return [`these keys of Codex have no effect here: ${shown.join(", ")}${more}`];
}

/** Lists keys that nothing uses. If a whole table is unused, only its name is listed. */
function unusedKeys(tree: SettingTree, path: KeyPath = []): string[] {
  return [...tree].flatMap(([key, node]) => {
    const here = [...path, key];
    if (isUnusedKey(here)) return [formatKey(here)];
    return isTree(node) ? unusedKeys(node, here) : [];
  });
}

export function isUnusedKey(path: KeyPath): boolean {
  const [first, , third] = path;
  return UNUSED_KEYS.has((first === "profiles" ? third : first) ?? "") || isUnusedInTable(configSchema, path);
}

interface UnknownKey {
  path: KeyPath;
  meant: string | null;
}

function unknownKeys(schema: z.ZodType, tree: SettingTree, path: KeyPath): UnknownKey[] {
  const { inner } = unwrapped(schema);
  if (inner instanceof z.ZodRecord)
    return [...tree].flatMap(([key, node]) =>
      isTree(node) ? unknownKeys(inner.valueType as z.ZodType, node, [...path, key]) : [],
    );
  if (!(inner instanceof z.ZodObject)) return [];
  const shape: Record<string, z.ZodType> = inner.shape;
  return [...tree].flatMap(([key, node]) => {
    const here = [...path, key];
    const known = memberOf(inner, key);
    if (known !== undefined) return isTree(node) ? unknownKeys(known, node, here) : [];
    return isUnusedKey(here)
      ? []
      : [{ path: here, meant: suggest(key, Object.keys(shape)) ?? elsewhere(key) }];
  });
}

/** Finds a key that is in the wrong table, for example because of a forgotten table header. */
function elsewhere(key: string): string | null {
  const shape: Record<string, z.ZodType> = configSchema.shape;
  if (Object.hasOwn(shape, key)) return key;
  for (const [table, schema] of Object.entries(shape)) {
    const { inner } = unwrapped(schema);
    if (inner instanceof z.ZodObject && Object.hasOwn(inner.shape, key)) return `${table}.${key}`;
  }
  return null;
}

function isUnusedInTable(schema: z.ZodType, path: KeyPath): boolean {
  const [part, ...rest] = path;
  const { inner } = unwrapped(schema);
  if (part === undefined) return inner instanceof z.ZodUnknown;
  if (inner instanceof z.ZodUnknown) return true;
  if (inner instanceof z.ZodRecord) return isUnusedInTable(inner.valueType as z.ZodType, rest);
  if (!(inner instanceof z.ZodObject)) return false;
  const next = memberOf(inner, part);
  return next !== undefined && isUnusedInTable(next, rest);
}

/** Keys of any version of Codex that brig accepts and ignores, so that both can share one file. */
const UNUSED_KEYS: ReadonlySet<string> = new Set([
  "allow_symlinked_codex_home",
  "analytics",
  "approvals_reviewer",
  "apps",
  "apps_mcp_product_sku",
  "audio",
  "auto_review",
  "browser_use",
  "check_for_update_on_startup",
  "cli_auth_credentials_store",
  "cloud",
  "commit_attribution",
  "computer_use",
  "debug",
  "default_permissions",
  "desktop",
  "disable_paste_burst",
  "disable_response_storage",
  "experimental_compact_prompt_file",
  "experimental_instructions_file",
  "experimental_realtime_start_instructions",
  "experimental_realtime_webrtc_call_base_url",
  "experimental_realtime_ws_backend_prompt",
  "experimental_realtime_ws_base_url",
  "experimental_realtime_ws_model",
  "experimental_realtime_ws_startup_context",
  "experimental_thread_config_endpoint",
  "experimental_thread_store",
  "experimental_thread_store_endpoint",
  "experimental_use_freeform_apply_patch",
  "experimental_use_unified_exec_tool",
  "feedback",
  "file_opener",
  "forced_chatgpt_workspace_id",
  "forced_login_method",
  "ghost_snapshot",
  "goals",
  "hide_agent_reasoning",
  "hooks",
  "include_apply_patch_tool",
  "include_apps_instructions",
  "include_collaboration_mode_instructions",
  "js_repl_node_module_dirs",
  "js_repl_node_path",
  "log_dir",
  "marketplaces",
  "mcp_enterprise_managed_auth",
  "mcp_oauth_callback_port",
  "mcp_oauth_callback_url",
  "mcp_oauth_credentials_store",
  "mcp_optional_startup_grace_ms",
  "memories",
  "model_auto_compact_token_limit_scope",
  "model_catalog_json",
  "model_post_turn_compact_threshold_percent",
  "notice",
  "notify",
  "orchestrator",
  "oss_provider",
  "permissions",
  "personality",
  "plan_mode_reasoning_effort",
  "plugins",
  "preferred_auth_method",
  "realtime",
  "responses_api_metadata",
  "review_model",
  "show_raw_agent_reasoning",
  "skills",
  "sqlite_home",
  "suppress_unstable_features_warning",
  "thread_unload_delay_secs",
  "tool_suggest",
  "tui",
  "windows",
  "zsh_path",
]);
