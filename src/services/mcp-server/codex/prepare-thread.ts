import { resolve } from "node:path";
import type {
  AgentSettings,
  ConversationOptions,
  RecordedSession,
  SessionHost,
} from "../../../agent/index.js";
import { findSession, openEarlierSession, prepareSession } from "../../../agent/index.js";
import { isSandboxMode } from "../../../sandbox/index.js";
import { callOverrides } from "./call-config.js";
import type { CallSettings } from "./tool-arguments.js";

/** A session to begin, or a recorded one to continue. */
export type ThreadRequest =
  | { kind: "begin"; settings: CallSettings }
  /** `settings`: those that it began with, if it began in this process; otherwise null. */
  | { kind: "continue"; threadId: string; settings: CallSettings | null };

/** Who answers the session's requests for approval and its questions. */
export type ThreadPeople = Pick<SessionHost, "approver" | "user">;

/** The options for opening a session's conversation. `Thread` adds the listener for its events. */
export type PreparedThread = ConversationOptions & { threadId: string };

/**
 * Prepares a session, whose sandbox has not started yet. Errors: `session.unknown` and `session.busy` for one
 * to continue, and those of the settings.
 */
export type PrepareThread = (request: ThreadRequest, people: ThreadPeople) => Promise<PreparedThread>;

/**
 * Prepares a session that a client of a server asks for. The server's own settings hold where the client says
 * nothing.
 */
export async function prepareThread(
  request: ThreadRequest,
  people: ThreadPeople,
  { settings: own, host }: { settings: AgentSettings; host: SessionHost },
): Promise<PreparedThread> {
  const asked = withCall(own, request.settings ?? {}, host);
  const peopled = { ...host, ...people };
  if (request.kind === "begin") {
    const instructions = request.settings["base-instructions"] ?? undefined;
    return (await prepareSession({ ...asked, instructions, hasManyTurns: true }, peopled)).options;
  }
  const { path } = await findSession(host.environment.brigHome, request.threadId);
  const { recorded, earlier } = await openEarlierSession(path, host);
  try {
    const settings = { ...asRecorded(asked, recorded, host), hasManyTurns: true, earlier };
    return (await prepareSession(settings, peopled)).options;
  } catch (error) {
    earlier.log.close();
    throw error;
  }
}

function withCall(own: AgentSettings, call: Partial<CallSettings>, host: SessionHost): AgentSettings {
  const { cwd, model, profile, sandbox: mode, config } = call;
  const placed = typeof cwd === "string" ? inDirectory(own, cwd, host) : own;
  return {
    ...placed,
    sandbox: mode ? { ...placed.sandbox, mode, policyFile: undefined } : placed.sandbox,
    model: model ?? own.model,
    profile: profile ?? own.profile,
    approvalPolicy: call["approval-policy"] ?? own.approvalPolicy,
    overrides: [...(own.overrides ?? []), ...callOverrides(config ?? {}), keysOf(call)],
  };
}

/** The keys of config.toml behind a call's other arguments. */
function keysOf(call: Partial<CallSettings>): Record<string, unknown> {
  const given = (keys: Record<string, unknown>) =>
    Object.fromEntries(Object.entries(keys).filter(([, value]) => value !== undefined && value !== null));
  return given({
    developer_instructions: call["developer-instructions"],
    compact_prompt: call["compact-prompt"],
    tools: given({
      update_plan: call["include-plan-tool"],
      apply_patch: call["include-apply-patch-tool"],
      view_image: call["include-view-image-tool"],
      web_search: call["tools-web-search-request"],
    }),
  });
}

/** Without a workspace it is a directory of the sandbox. */
function inDirectory(settings: AgentSettings, path: string, { cwd }: SessionHost): AgentSettings {
  const { sandbox } = settings;
  return sandbox.workspace === null
    ? { ...settings, directory: path }
    : { ...settings, sandbox: { ...sandbox, workspace: resolve(cwd, path) } };
}

/**
 * A continued session keeps its directory, mode and approval policy, because `codex-reply` has no arguments
 * for them.
 */
function asRecorded(
  settings: AgentSettings,
  { meta, lastTurn, sentContext, hasForeignDirectory }: RecordedSession,
  host: SessionHost,
): AgentSettings {
  const own = lastTurn?.cwd ?? meta.cwd;
  const { sandbox, ...others } =
    own && !hasForeignDirectory && settings.sandbox.workspace !== null
      ? inDirectory(settings, own, host)
      : settings;
  const mode = sentContext?.setting.sandboxMode;
  return {
    ...others,
    sandbox:
      mode !== undefined && isSandboxMode(mode) ? { ...sandbox, mode, policyFile: undefined } : sandbox,
    approvalPolicy: sentContext?.setting.approvalPolicy ?? settings.approvalPolicy,
  };
}
