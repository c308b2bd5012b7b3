import type { PreparedSession } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import type { Login, SessionCommand, TerminalParts } from "../../services/index.js";
import { fenced } from "../../services/index.js";
import {
  type ConfigFlags,
  configuredIssuer,
  defaultTimeoutMs,
  logInAtIssuer,
} from "../commands/login/login.js";
import { openBrowser } from "../setup/open-browser.js";
import { slashCommands } from "./input/slash-commands.js";
import type { Block } from "./screen/block.js";

/** What `brig acp` shares with a person at a terminal. */
export const terminalParts: TerminalParts = {
  logIn: async ({ config = [] }, context) =>
    await logInAtIssuer({ config, browser: true, timeout: defaultTimeoutMs }, context),
  loginAtEditor,
  sessionCommands,
};

/** The commands that an editor has no button or menu for. */
const offered = ["status", "diff", "compact"];

/** Slash commands of the terminal, which here answer with Markdown. */
function sessionCommands(setup: PreparedSession): SessionCommand[] {
  return slashCommands
    .filter(({ name }) => offered.includes(name))
    .map((command) => ({
      name: command.name,
      description: command.summary,
      async run(conversation, { signal }) {
        const [{ runSlashCommand }, { PendingQuestions }] = await Promise.all([
          import("./run-slash-command.js"),
          import("./question.js"),
        ]);
        const shown: string[] = [];
        const questions = new PendingQuestions(
          () => undefined,
          () => Date.now(),
        );
        await runSlashCommand(
          command,
          { argument: "", signal },
          {
            conversation,
            setup,
            sessions: null,
            context: null,
            questions,
            show: (block) => void shown.push(blockText(block)),
            describeTools: () => [],
            hasBusyAgents: () => false,
            showWork: async (_what, _signal, run) => await run(() => undefined),
            onNewSandbox: () => undefined,
          },
        );
        return shown.length === 0 ? "done" : shown.join("\n\n");
      },
    }));
}

function blockText(block: Block): string {
  switch (block.kind) {
    case "report":
      return block.rows.map(([name, text]) => `- ${name}: \`${text}\``).join("\n");
    case "listing":
      return fenced(block.lines.map(({ text }) => text).join("\n"), "diff");
    case "notice":
      return block.hint === undefined ? block.text : `${block.text}\n\n${block.hint}`;
    default:
      return "";
  }
}

/** The ways in which an editor lets a person log in. */
function loginAtEditor(flags: ConfigFlags, context: CliContext): Login {
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
