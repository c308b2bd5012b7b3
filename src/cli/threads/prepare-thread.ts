import type { RecordedSession } from "../../agent/index.js";
import { continueSessionFile, findSession, loadSession } from "../../agent/index.js";
import { isSandboxMode } from "../../sandbox/index.js";
import type { PreparedThread, SessionSettings, ThreadPeople, ThreadRequest } from "../../services/index.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";
import { type EarlierSession, prepareAgent } from "../setup/agent-setup.js";
import { earlierSession } from "../setup/earlier-session.js";
import { callOverrides } from "./call-config.js";
import { tomlValue } from "./toml-value.js";

/** The settings of a call that switch a tool on or off, by the key of config.toml. */
const toolKeys = {
  "include-plan-tool": "tools.update_plan",
  "include-apply-patch-tool": "tools.apply_patch",
  "include-view-image-tool": "tools.view_image",
  "tools-web-search-request": "tools.web_search",
} as const satisfies Partial<Record<keyof SessionSettings, string>>;

/**
 * Prepares a session that a client of a server asks for. The server's own flags hold where the client says
 * nothing.
 */
export async function prepareThread(
  request: ThreadRequest,
  people: ThreadPeople,
  { flags, context }: { flags: AgentFlags; context: CliContext },
): Promise<PreparedThread> {
  if (request.kind === "begin") {
    const { settings } = request;
    return await prepare(withSettings(flags, settings), { context, people, settings });
  }
  const { path } = await findSession(context.environment.brigHome, request.threadId);
  // Opened, and thereby locked, before it is read, so that nobody can add to it in between.
  const log = await continueSessionFile(path, { now: () => new Date() });
  try {
    const recorded = await loadSession(path, { signal: context.signal });
    const earlier = earlierSession(recorded, log);
    const asked = withSettings(flags, request.settings ?? {});
    return await prepare(asRecorded(asked, recorded), { context, people, settings: null, earlier });
  } catch (error) {
    log.close();
    throw error;
  }
}

async function prepare(
  flags: AgentFlags,
  use: {
    context: CliContext;
    people: ThreadPeople;
    settings: SessionSettings | null;
    earlier?: EarlierSession;
  },
): Promise<PreparedThread> {
  const { context, people, settings, earlier } = use;
  const { options, threadId } = await prepareAgent(flags, context, {
    hasManyTurns: true,
    ...people,
    earlier,
  });
  const instructions = settings?.["base-instructions"] ?? options.instructions;
  return { ...options, threadId, instructions };
}

function withSettings(flags: AgentFlags, settings: SessionSettings | Record<string, never>): AgentFlags {
  const { cwd, model, profile, sandbox, config } = settings;
  const texts = [
    ...textOverride("developer_instructions", settings["developer-instructions"]),
    ...textOverride("compact_prompt", settings["compact-prompt"]),
  ];
  const tools = Object.entries(toolKeys).flatMap(([name, key]) => {
    const isOn = settings[name as keyof typeof toolKeys];
    return typeof isOn === "boolean" ? [override(key, isOn)] : [];
  });
  return {
    ...flags,
    cd: cwd ?? flags.cd,
    model: model ?? flags.model,
    profile: profile ?? flags.profile,
    askForApproval: settings["approval-policy"] ?? flags.askForApproval,
    ...(sandbox ? { sandbox, policy: undefined } : {}),
    config: [...(flags.config ?? []), ...callOverrides(config ?? {}), ...texts, ...tools],
  };
}

/**
 * A continued session keeps its directory, mode and approval policy, because `codex-reply` has no arguments
 * for them.
 */
function asRecorded(flags: AgentFlags, { meta, lastTurn, ...recorded }: RecordedSession): AgentFlags {
  const { sentContext, hasForeignDirectory } = recorded;
  const own = lastTurn?.cwd ?? meta.cwd;
  const mode = sentContext?.setting.sandboxMode;
  return {
    ...flags,
    ...(own && !hasForeignDirectory && flags.workspace !== "none" ? { cd: own } : {}),
    ...(mode !== undefined && isSandboxMode(mode) ? { sandbox: mode, policy: undefined } : {}),
    askForApproval: sentContext?.setting.approvalPolicy ?? flags.askForApproval,
  };
}

function textOverride(key: string, text: string | null | undefined): string[] {
  return typeof text === "string" ? [override(key, text)] : [];
}

function override(key: string, value: unknown): string {
  return `${key}=${tomlValue(value, key)}`;
}
