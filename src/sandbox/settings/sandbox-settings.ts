import type { Environment } from "../../config/env.js";
import type { LoadedPolicy } from "../../policy/policy.js";

/** Everything about a sandbox that is decided without its engine. Nothing is left to a default. */
export interface SandboxSettings {
  policy: LoadedPolicy;
  /** Absolute path on the host; null for a sandbox without a workspace. */
  workspace: string | null;
  /** Reference or id. */
  image: string;
  /** OCI runtime; undefined for the engine's default. */
  runtime?: string | undefined;
  /** `--add-dir`: refused where the policy takes no further writable directories. */
  addDirs: readonly string[];
  /** `writable_roots` of the configuration: left aside where the policy takes none. */
  writableRoots: readonly string[];
  /** For commands, never for the container. */
  env: Readonly<Record<string, string>>;
  leaseSeconds: number;
  /** The container outlives its host process. */
  keep: boolean;
  environment: Environment;
}
