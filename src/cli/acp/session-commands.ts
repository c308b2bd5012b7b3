import type { PreparedSession } from "../../agent/index.js";
import type { SessionCommand } from "../../services/index.js";
import { fenced } from "../../services/index.js";
import { slashCommands } from "../conversation/input/slash-commands.js";
import type { Block } from "../conversation/screen/block.js";

/** The commands that an editor has no button or menu for. */
const offered = ["status", "diff", "compact"];

/** Slash commands of the terminal, which here answer with Markdown. */
export function sessionCommands(setup: PreparedSession): SessionCommand[] {
  return slashCommands
    .filter(({ name }) => offered.includes(name))
    .map((command) => ({
      name: command.name,
      description: command.summary,
      async run(conversation, { signal }) {
        const [{ runSlashCommand }, { PendingQuestions }] = await Promise.all([
          import("../conversation/run-slash-command.js"),
          import("../conversation/question.js"),
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
            questions,
            show: (block) => void shown.push(blockText(block)),
            describeTools: () => [],
            hasBusyAgents: () => false,
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
