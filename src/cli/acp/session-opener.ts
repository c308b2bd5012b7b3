import { resolve } from "node:path";
import type { AgentSettings, EarlierSession, SessionFileEntry } from "../../agent/index.js";
import { DEFAULT_MODEL, findSessionFiles, openEarlierSession, prepareSession } from "../../agent/index.js";
import { BrigError } from "../../errors.js";
import type { Login, PreparedSession, SessionOpener, SessionRequest } from "../../services/index.js";
import { deleteWithAgents } from "../commands/delete-sessions.js";
import { configuredIssuer, defaultTimeoutMs } from "../commands/login/login.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";
import { sessionHost, warningText } from "../setup/agent-settings.js";
import { openBrowser } from "../setup/open-browser.js";
import { serversOf } from "./editor-servers.js";
import { sessionCommands } from "./session-commands.js";

/** Opens the sessions of editors as `brig run` opens its own, with the same settings and configuration. */
export function sessionOpener(
  settings: AgentSettings,
  { flags, context }: { flags: Pick<AgentFlags, "config">; context: CliContext },
): SessionOpener {
  const home = context.environment.brigHome;
  return {
    home,
    login: loginAtEditor(flags, context),
    prepare: (request) => prepare(request, settings, context),
    async deleteSession(id) {
      await deleteWithAgents(await exactSession(home, id), home);
    },
  };
}

async function prepare(
  request: SessionRequest,
  { sandbox, ...others }: AgentSettings,
  context: CliContext,
): Promise<PreparedSession> {
  const { cwd, additionalDirectories, resume, approver, user, onWarning } = request;
  const { servers, warnings: refused } = serversOf(request.mcpServers);
  for (const warning of refused) onWarning(warning);
  const warn = async (warning: string | BrigError) => onWarning(warningText(warning).trim());
  const host = { ...sessionHost(context), warn, approver, user };
  const addDirs = [...(sandbox.addDirs ?? []), ...additionalDirectories.map((path) => resolve(path))];
  const settings = { ...others, sandbox: { ...sandbox, workspace: resolve(cwd), addDirs } };
  const earlier = resume === null ? undefined : await openEarlier(resume, { context, onWarning });
  try {
    const use = { hasManyTurns: true, mcpServers: servers, earlier };
    const setup = await prepareSession({ ...settings, ...use }, host);
    const { config, options, setting } = setup;
    return {
      threadId: options.threadId,
      options,
      setting,
      reasoningEffort: config.model_reasoning_effort,
      commands: sessionCommands(setup),
      models: [options.model.model, ...(options.model.provider === "openai" ? [DEFAULT_MODEL] : [])],
      inMode: (mode) => setup.inMode(mode),
      changeModel: setup.withModel,
      discard: () => options.session?.close(),
    };
  } catch (error) {
    earlier?.log.close();
    throw error;
  }
}

async function openEarlier(
  id: string,
  { context, onWarning }: { context: CliContext; onWarning: (message: string) => void },
): Promise<EarlierSession> {
  const { path } = await exactSession(context.environment.brigHome, id);
  const warn = async (sentence: string) => onWarning(sentence);
  const { earlier } = await openEarlierSession(path, { signal: context.signal, warn });
  return { ...earlier, threadId: id };
}

/** A client names a session by its whole id; a part of it, as a person may type, is not accepted. */
async function exactSession(home: string, id: string): Promise<SessionFileEntry> {
  const file = (await findSessionFiles(home)).find((each) => each.id === id);
  if (file !== undefined) return file;
  throw new BrigError(`there is no session ${JSON.stringify(id.slice(0, 100))}`, {
    code: "session.unknown",
    hint: "session/list lists those there are",
  });
}

function loginAtEditor(flags: Pick<AgentFlags, "config">, context: CliContext): Login {
  const { brigHome } = context.environment;
  return {
    async withBrowser({ signal, show }) {
      const { logInWithBrowser, storeTokens } = await import("../../agent/index.js");
      const settings = await configuredIssuer(flags, context);
      const tokens = await logInWithBrowser({
        settings,
        timeoutMs: defaultTimeoutMs,
        signal,
        async show(url) {
          openBrowser(url, context, { isAskedFor: true });
          await show(url);
        },
      });
      await storeTokens(brigHome, tokens, { signal });
    },
    async withApiKey(key, { signal }) {
      const { parseApiKey, storeApiKey } = await import("../../agent/index.js");
      await storeApiKey(brigHome, parseApiKey(key), { signal });
    },
  };
}
