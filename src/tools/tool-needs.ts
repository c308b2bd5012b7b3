import { posix } from "node:path";
import type { TruncationPolicy } from "../output/truncation.js";
import type { SandboxPlace } from "./review/action.js";
import type { ActionReview } from "./review/approval.js";
import type { ToolSandbox } from "./tool-sandbox.js";

// What many tools need of the session that they work in. Each tool names what it uses, and sees no more.

export interface WorkingDirectory {
  /** Absolute path inside the sandbox; relative paths of a call start here. */
  readonly cwd: string;
}

export interface CommandEnvironment {
  /** Variables every command gets on top of the sandbox's own. */
  readonly environment: Readonly<Record<string, string>>;
}

export interface SandboxAccess {
  /** Waits until it has started. Default: the session's own. */
  sandbox(place?: SandboxPlace): Promise<ToolSandbox>;
}

export interface Reviewed {
  /** Who decides whether a command or a patch starts, and where. */
  readonly review: ActionReview;
}

export interface OutputLimit {
  /** How much of an output the model is given. */
  readonly truncation: TruncationPolicy;
}

/** The variables of a command: with full access there is a network, whatever those of the sandbox say. */
export function environmentIn(
  { environment }: CommandEnvironment,
  place: SandboxPlace,
): Readonly<Record<string, string | undefined>> {
  if (place === "sandbox") return environment;
  return { ...environment, CODEX_SANDBOX_NETWORK_DISABLED: undefined };
}

/** Where a call runs: an empty `workdir` means the default. */
export function workdirOf({ cwd }: WorkingDirectory, workdir: string | undefined): string {
  return posix.resolve(cwd, workdir ?? "");
}
