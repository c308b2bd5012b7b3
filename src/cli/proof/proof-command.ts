import type { Command } from "commander";
import { proofsOf, readSessionLines } from "../../agent/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import type { CliContext } from "../context.js";
import { say, write } from "../render.js";
import { addSessionArgument, type FileOfSession, type SessionChoice } from "../sessions/chosen-session.js";
import { proofText } from "./proof-text.js";

export function defineProof(command: Command, context: CliContext, fileOf: FileOfSession): void {
  addSessionArgument(command)
    .description("print what the kernel confirmed of a session's policy before its first command")
    .option("--json", "print one JSON object per line, for each sandbox of the session one")
    .action(async (session: string | undefined, flags: SessionChoice & { json?: boolean }) => {
      await printProofs(await fileOf(session, flags), flags, context);
    });
}

async function printProofs(
  file: string,
  { json = false }: { json?: boolean },
  { stdout, stderr, signal }: CliContext,
): Promise<void> {
  let count = 0;
  for await (const proof of proofsOf(readSessionLines(file, { signal }))) {
    count++;
    if (json) await write(stdout, `${jsonText(proof)}\n`);
    else await write(stdout, `${count > 1 ? "\n" : ""}${proofText(proof)}`);
  }
  if (count === 0 && !json) await say(stderr, "brig: no sandbox was opened in this session\n");
}
