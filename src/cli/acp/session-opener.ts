import { Writable } from "node:stream";
import type { SessionFileEntry } from "../../agent/index.js";
import { continueSessionFile, DEFAULT_MODEL, describeDamage, findSessionFiles, loadSession } from "../../agent/index.js";
import type { Login, PreparedSession, SessionOpener, SessionRequest } from "../../services/index.js";
import { BrigError } from "../../errors.js";
import { deleteWithAgents } from "../commands/delete-sessions.js";
import { configuredIssuer, defaultTimeoutMs } from "../commands/login/login.js";
import type { CliContext } from "../context.js";
import type { AgentFlags } from "../setup/agent-flags.js";
import { type AgentUse, type EarlierSession, prepareAgent } from "../setup/agent-setup.js";
import { earlierSession } from "../setup/earlier-session.js";
import { openBrowser } from "../setup/open-browser.js";
import { serversOf } from "./editor-servers.js";
import { sessionCommands } from "./session-commands.js";

/** Opens the sessions of editors as `brig run` opens its own, with the same flags and configuration. */
export function sessionOpener(flags: AgentFlags, context: CliContext): SessionOpener {
  const home = context.environment.brigHome;
  return {
    home,
    login: loginAtEditor(flags, context),
    prepare: (request) => prepare(request, flags, context),
    async deleteSession(id) {
      await deleteWithAgents(await exactSession(home, id), home);
    },
  };
}

async function prepare(
  request: SessionRequest,
  flags: AgentFlags,
  context: CliContext,
): Promise<PreparedSession> {
  const { cwd, additionalDirectories, resume, approver, user, onWarning } = request;
  const { servers, warnings: refused } = serversOf(request.mcpServers);
  for (const warning of refused) onWarning(warning);
  const own: CliContext = { ...context, stderr: warnings(onWarning) };
  const ownFlags = { ...flags, cd: cwd, addDir: [...(flags.addDir ?? []), ...additionalDirectories] };
  const use: AgentUse = { hasManyTurns: true, approver, user, mcpServers: servers };
  const earlier = resume === null ? undefined : await openEarlier(resume, { context, onWarning });
  try {
    const setup = await prepareAgent(ownFlags, own, { ...use, earlier });
    const { config, options, setting, threadId } = setup;
    return {
      threadId,
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
  // Opening the file locks it, so that no other process can add to it while it is read.
  const log = await continueSessionFile(path, { now: () => new Date() });
  try {
    const recorded = await loadSession(path, { signal: context.signal });
    const damage = describeDamage(recorded.damage);
    if (damage !== null) onWarning(damage);
    return earlierSession({ ...recorded, threadId: id }, log);
  } catch (error) {
    log.close();
    throw error;
  }
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

function loginAtEditor(flags: AgentFlags, context: CliContext): Login {
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

/** A stream that turns what is written to it into warnings for the editor. */
function warnings(onWarning: (message: string) => void): Writable {
  return new Writable({
    decodeStrings: false,
    write(chunk: string | Uint8Array, _encoding, done) {
      const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
      if (text.trim() !== "") onWarning(text.trim());
      done();
    },
  });
}
