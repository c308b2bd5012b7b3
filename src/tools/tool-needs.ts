import { posix } from "node:path";
import type { TruncationPolicy } from "../sandbox/index.js";
import type { SandboxPlace } from "./review/action.js";
import type { ActionReview } from "./review/approval.js";
import type { ToolSandbox } from "./tool-sandbox.js";

// What several tools need of their session. Each tool declares the ones that it uses.

export interface WorkingDirectory {
  /** Absolute path inside the sandbox. */
  readonly cwd: string;
}

export interface CommandEnvironment {
  /** Variables that every command gets in addition to those of the sandbox. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface SandboxAccess {
  /** Waits until the sandbox has started. Default: the session's own. */
  sandbox(place?: SandboxPlace): Promise<ToolSandbox>;
}

export interface Reviewed {
  readonly review: ActionReview;
}

export interface OutputLimit {
  readonly truncation: TruncationPolicy;
}

/** Full access includes the network, so the variable with which Codex denies that is unset there. */
export function environmentIn(
  { environment }: CommandEnvironment,
  place: SandboxPlace,
): Readonly<Record<string, string | undefined>> {
  if (place === "sandbox") return environment;
  return { ...environment, CODEX_SANDBOX_NETWORK_DISABLED: undefined };
}

/** An empty `workdir` means the default. */
export function workdirOf({ cwd }: WorkingDirectory, workdir: string | null | undefined): string {
  return posix.resolve(cwd, workdir ?? "");
}
