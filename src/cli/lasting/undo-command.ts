import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { ChangesWork, say, write, writeJson } from "../../command/index.js";
import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { OnCopied } from "../../sandbox/index.js";
import { lastingWorkspace } from "../../services/index.js";
import { ownerNow, runningRecord } from "./exec-in.js";

export function defineUndo(command: Command, context: CliContext): void {
  command
    .argument("<sandbox>", "a name, or an id or the start of one, as brig ps lists them")
    .option("--json", "print JSON")
    .addHelpText("after", HELP)
    .action(async (wanted: string, { json = false }: { json?: boolean }) => {
      await undo(wanted, { json, context });
    });
}

const HELP = `
It takes back what the last command has changed in a copy-on-write workspace (brig up --workspace overlay), while everything in the sandbox goes on.
Called again, it takes back what the command before that has changed. Your own files stay as they are.`;

/** The word for how an undo has changed a path. */
const PUT_BACK = { added: "made again", modified: "put back", deleted: "removed" } as const;

async function undo(
  wanted: string,
  { json, context }: { json: boolean; context: CliContext },
): Promise<void> {
  const { stdout, stderr, signal } = context;
  const { name } = runningRecord(wanted, context);
  const workspace = lastingWorkspace(await ownerNow(context), name);
  const undone = await shown(context, (onCopied) => workspace.undo({ signal, onCopied }));
  if (json) return await writeJson(stdout, { undone });
  if (undone === null) return await say(stderr, "brig: there is nothing to undo\n");
  const { changes, count } = undone.point;
  for (const { path, change } of changes)
    await write(stdout, `${PUT_BACK[change].padEnd(10)} ${neutraliseLine(path)}\n`);
  if (count > changes.length) await say(stderr, `brig: and ${count - changes.length} more paths\n`);
}

async function shown<T>(context: CliContext, undo: (onCopied: OnCopied) => Promise<T>): Promise<T> {
  using work = new ChangesWork(context, "taking back the changes");
  return await undo(work.onCopied);
}
