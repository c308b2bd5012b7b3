import type { Command } from "commander";
import { egressOf, readSessionLines } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write, writeJson, writeTable } from "../../command/index.js";
import { jsonText } from "../../lib/json/json-text.js";
import type { EgressEntry } from "../../sandbox/index.js";
import { mergedEntries, proposeHosts } from "../../sandbox/index.js";
import { addSessionArgument, type FileOfSession, type SessionChoice } from "../sessions/chosen-session.js";
import { egressHeader, egressRow, entryAsJson } from "./egress-text.js";
import { proposalText } from "./learning.js";

interface EgressFlags extends SessionChoice {
  denied?: boolean;
  propose?: boolean;
  json?: boolean;
}

export function defineEgress(command: Command, context: CliContext, fileOf: FileOfSession): void {
  addSessionArgument(command)
    .description("list what programs of a session with an allow-list tried to reach")
    .option("--denied", "only what was refused")
    .option("--propose", "the shortest list of hosts that allows what was reached")
    .option("--json", "print one JSON object per line, for equal attempts only one")
    .action(async (session: string | undefined, flags: EgressFlags) => {
      await listEgress(await fileOf(session, flags), flags, context);
    });
}

async function listEgress(
  file: string,
  { denied = false, propose = false, json = false }: EgressFlags,
  context: CliContext,
): Promise<void> {
  const { stdout, stderr } = context;
  const all = await readEgress(file, context);
  if (propose) {
    const proposal = proposeHosts(all);
    return json ? await writeJson(stdout, proposal) : await say(stdout, proposalText(proposal));
  }
  const entries = denied ? all.filter(({ outcome }) => outcome === "denied") : all;
  if (json) {
    for (const entry of entries) await write(stdout, `${jsonText(entryAsJson(entry))}\n`);
    return;
  }
  if (entries.length > 0) return await writeTable(stdout, [egressHeader, ...entries.map(egressRow)]);
  const none =
    denied && all.length > 0
      ? "nothing was refused"
      : "no attempts were recorded, which needs a session with --network allowlist:HOST,… or --network learn";
  await say(stderr, `brig: ${none}\n`);
}

async function readEgress(file: string, { signal }: CliContext): Promise<EgressEntry[]> {
  const entries: EgressEntry[] = [];
  for await (const entry of egressOf(readSessionLines(file, { signal }))) entries.push(entry);
  return mergedEntries(entries);
}
