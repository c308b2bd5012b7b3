import type { PublishedPort, SandboxFlags } from "../../command/index.js";
import type { AgentKey } from "./agents/known-agents.js";

/** The ways in which an agent can get its configuration. */
export const CONFIG_ACCESSES = ["copy", "read-only", "none"] as const;
export type ConfigAccess = (typeof CONFIG_ACCESSES)[number];

export interface WrapFlags extends SandboxFlags {
  agent?: string;
  name?: string;
  resume?: string;
  configDir?: ConfigAccess;
  secret?: AgentKey[];
  timeout?: number;
  /** The limit in bytes. */
  homeLimit?: number;
  publish?: PublishedPort[];
  list?: boolean;
  remove?: string;
  json?: boolean;
}
