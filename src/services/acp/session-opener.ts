import type { McpServer } from "@agentclientprotocol/sdk";
import type { PreparedSession as AgentSession, Approver, Conversation } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import type { AskedUser } from "../../tools/index.js";

/** Everything that the sessions of an editor need from the rest of brig. */
export interface SessionOpener {
  /** The directory with brig's own files, session files among them. */
  readonly home: string;
  readonly login: Login;
  /** Prepares a session, and reads its earlier conversation if it has one. Nothing runs yet. */
  prepare(request: SessionRequest): Promise<PreparedSession>;
  /** Deletes the file of a session. Errors: `session.unknown`, `session.busy`. */
  deleteSession(id: string): Promise<void>;
}

/** An MCP server that an editor asks for. */
export type RequestedServer = McpServer;

export interface SessionRequest {
  /** Absolute paths on the host. */
  cwd: string;
  additionalDirectories: readonly string[];
  /** Sent by the client; only their shape has been checked. */
  mcpServers: readonly RequestedServer[];
  /** The id of the session to continue; null for a new one. */
  resume: string | null;
  approver: Approver;
  user: AskedUser | undefined;
  /** Called with problems that do not keep the session from working. */
  onWarning(message: string): void;
}

/** If no conversation is opened with its options, its session file must be closed. */
export interface PreparedSession
  extends Pick<AgentSession, "options" | "setting" | "inMode" | "otherModels"> {
  config: Pick<AgentSession["config"], "model_reasoning_effort">;
  /** Commands that a person can type after a slash. */
  commands: readonly SessionCommand[];
}

export interface SessionCommand {
  name: string;
  description: string;
  /** Runs between two turns and returns what a person reads, as Markdown. */
  run(conversation: Conversation, options: { signal: AbortSignal }): Promise<string>;
}

/** Ways for a person to log in to the provider of the model. */
export interface Login {
  /** Opens a browser on this machine and waits. Error: `model.auth`. */
  withBrowser(options: { signal: AbortSignal; show(url: URL): Promise<void> }): Promise<void>;
  /** Stores a key. Error: `usage.invalid` if it cannot be one. */
  withApiKey(key: string, options: { signal: AbortSignal }): Promise<void>;
}

/** What an editor shares with a person at a terminal. The command line has both, and hands it in. */
export interface TerminalParts {
  /** Logs a person in with ChatGPT at this terminal. */
  logIn(flags: Pick<AgentFlags, "config">, context: CliContext): Promise<void>;
  loginAtEditor(flags: Pick<AgentFlags, "config">, context: CliContext): Login;
  sessionCommands(setup: AgentSession): SessionCommand[];
}
