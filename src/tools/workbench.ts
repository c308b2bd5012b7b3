import { posix } from "node:path";
import type { TruncationPolicy } from "../output/truncation.js";
import type { ActionReview, SandboxPlace } from "./approval.js";
import type { CommandSessions } from "./command/command-sessions.js";
import type { MissingPrograms } from "./command/missing-programs.js";
import type { UserShell } from "./command/user-shell.js";
import type { Patcher } from "./patch/patcher.js";
import type { KernelSlot } from "./repl/kernel-slot.js";
import type { AskedUser } from "./session/request-user-input.js";
import type { ToolCallOptions, ToolOutput } from "./tool.js";
import type { ToolGates } from "./tool-gates.js";
import type { ToolSandbox } from "./tool-sandbox.js";

/** What the tools of one registry share. */
export interface Workbench {
  /** Absolute path inside the sandbox; relative paths of a call start here. */
  readonly cwd: string;
  /** Variables every command gets on top of the sandbox's own. */
  readonly environment: Readonly<Record<string, string>>;
  readonly truncation: TruncationPolicy;
  readonly allowsLoginShell: boolean;
  /** Whether the model takes pictures in their original size; null where that is not known, and a call says what it wants. */
  readonly takesOriginalPictures: boolean | null;
  /** How long one look at a running command may wait without typing, in milliseconds. */
  readonly maxPollMs: number;
  readonly sessions: CommandSessions;
  readonly missingPrograms: MissingPrograms;
  readonly patcher: Patcher;
  readonly jsKernel: KernelSlot;
  /** Calls another tool on a model's behalf: one that is off is refused, and what is wrong with the call is the output. */
  callTool(name: string, args: unknown, call: ToolCallOptions): Promise<ToolOutput>;
  /** Settings that some tools look different under. */
  readonly gates: ToolGates;
  /** Null where nobody can answer. */
  readonly user: AskedUser | null;
  /** Who decides whether a command or a patch starts, and where. */
  readonly review: ActionReview;
  /** Default: the session's own. */
  sandbox(place?: SandboxPlace): Promise<ToolSandbox>;
  /** The shell of the sandbox's image, asked once. */
  shell(): Promise<UserShell>;
  /** Six hexadecimal digits that tell one output from another. */
  nextChunkId(): string;
}

/** The variables of a command: with full access there is a network, whatever those of the sandbox say. */
export function environmentIn(
  { environment }: Pick<Workbench, "environment">,
  place: SandboxPlace,
): Readonly<Record<string, string | undefined>> {
  if (place === "sandbox") return environment;
  return { ...environment, CODEX_SANDBOX_NETWORK_DISABLED: undefined };
}

/** Where a call runs: an empty `workdir` means the default. */
export function workdirOf(bench: Pick<Workbench, "cwd">, workdir: string | undefined): string {
  return posix.resolve(bench.cwd, workdir ?? "");
}
