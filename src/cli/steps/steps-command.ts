import type { Command } from "commander";
import type { ChangingStep, SessionLine } from "../../agent/index.js";
import { changingSteps, readSessionLines, WorkspaceReading } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeTable } from "../../command/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import { clipped } from "../../sandbox/index.js";
import { callTitle, changedText } from "../display/call-text.js";
import { addSessionArgument, type FileOfSession, type SessionChoice } from "../sessions/chosen-session.js";

const CALL_CHARS = 60;

export function defineSteps(command: Command, context: CliContext, fileOf: FileOfSession): void {
  addSessionArgument(command)
    .description("list the calls that changed a copy-on-write workspace, and what each changed")
    .option("--json", "print the calls, one JSON object per line")
    .addHelpText("after", help)
    .action(async (session: string | undefined, flags: SessionChoice & { json?: boolean }) => {
      await listSteps(await fileOf(session, flags), { json: flags.json === true, context });
    });
}

const help = `
The state after each of these calls was kept: brig resume ID --at STEP goes on from there.`;

async function listSteps(
  file: string,
  { json, context }: { json: boolean; context: CliContext },
): Promise<void> {
  const { stdout, stderr, signal } = context;
  const workspace = new WorkspaceReading();
  const rows: string[][] = [];
  for await (const step of changingSteps(following(readSessionLines(file, { signal }), workspace))) {
    if (json) await write(stdout, `${jsonText(stepAsJson(step))}\n`);
    rows.push(stepRow(step));
  }
  if (rows.length === 0) await say(stderr, `brig: ${whyNone(workspace)}\n`);
  else if (!json) await writeTable(stdout, [["STEP", "CALL", "CHANGED"], ...rows]);
}

async function* following(
  lines: AsyncIterable<SessionLine>,
  workspace: WorkspaceReading,
): AsyncIterable<SessionLine> {
  for await (const line of lines) {
    if (line.kind === "record" && line.record.type === "brig") workspace.add(line.record);
    yield line;
  }
}

function whyNone({ result }: WorkspaceReading): string {
  return result === null
    ? "no states of the session's workspace were kept, which needs --workspace overlay"
    : "no call of the session has changed its workspace";
}

function stepRow({ step, call, point }: ChangingStep): string[] {
  const title = call === null ? "/undo" : clipped(callTitle(call.name, call.input), CALL_CHARS);
  return [String(step), title, changedText(point)];
}

function stepAsJson({ step, call, point }: ChangingStep): object {
  const { snapshot, number, count, changes } = point;
  const about = call === null ? null : { id: call.callId, name: call.name, input: call.input };
  return { step, call: about, snapshot, point: number, count, changes };
}
