import { resolve } from "node:path";
import type { AgentSettings, EarlierSession, SessionFileEntry } from "../../agent/index.js";
import { deleteWithAgents, findSessionFiles, openEarlierSession, prepareSession } from "../../agent/index.js";
import type { AgentFlags, CliContext } from "../../command/index.js";
import { sessionHost, warningText } from "../../command/index.js";
import { BrigError } from "../../errors.js";
import { serversOf } from "./editor-servers.js";
import type { PreparedSession, SessionOpener, SessionRequest, TerminalParts } from "./session-opener.js";

/** Opens the sessions of editors as `brig run` opens its own, with the same settings and configuration. */
export function sessionOpener(
  settings: AgentSettings,
  parts: TerminalParts,
  { flags, context }: { flags: Pick<AgentFlags, "config">; context: CliContext },
): SessionOpener {
  const home = context.environment.brigHome;
  return {
    home,
    login: parts.loginAtEditor(flags, context),
    prepare: (request) => prepare(request, settings, { parts, context }),
    async deleteSession(id) {
      await deleteWithAgents(await exactSession(home, id), home);
    },
  };
}

async function prepare(
  request: SessionRequest,
  { sandbox, ...others }: AgentSettings,
  { parts, context }: { parts: TerminalParts; context: CliContext },
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
    return { ...setup, commands: parts.sessionCommands(setup) };
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
