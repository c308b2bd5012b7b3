import { existsSync } from "node:fs";
import { egressOf, projectHosts, readSessionLines } from "../../agent/index.js";
import type { NetworkScope } from "../../sandbox/index.js";
import { describeNetwork, isWithinNetwork, mergedEntries, normalPattern } from "../../sandbox/index.js";
import { egressRow } from "../egress/egress-text.js";
import { type Block, notice, warning } from "./screen/block.js";
import type { SlashCall, SlashParts } from "./slash-call.js";

const SHOWN_ATTEMPTS = 10;
const USAGE = "/network, /network allow HOST, /network deny HOST or /network none";

/** Shows the list of allowed hosts and the last attempts, or changes the list while the sandbox runs. */
export async function networkCommand({ argument, signal }: SlashCall, parts: SlashParts): Promise<void> {
  const { conversation, show } = parts;
  const sandbox = await conversation.sandbox;
  const { Sandbox, allowListOf, settingsOf } = await import("../../sandbox/index.js");
  const allowList = sandbox instanceof Sandbox ? allowListOf(sandbox) : null;
  if (!(sandbox instanceof Sandbox) || allowList === null)
    return show(
      warning(
        `this session has no allow-list; its network is ${describeNetwork(conversation.setting.network)}`,
        "start brig with --network allowlist:HOST, for example allowlist:github.com",
      ),
    );
  const { hosts } = allowList;
  const settings = settingsOf(sandbox);
  const kept = await projectHosts(settings);
  const always = (await kept?.read()) ?? [];
  if (argument === "") return show(await overview(hosts, { parts, signal, always }));
  const wanted = changedHosts(argument, hosts);
  if (wanted.kind === "refused") return show(warning(wanted.reason, USAGE));
  const network: NetworkScope = { kind: "allowlist", hosts: wanted.hosts };
  const { policy, name } = settings.policy;
  if (!policy.overrides.network && !isWithinNetwork(network, policy.network))
    return show(warning(`the policy ${name} does not let the network be opened`));
  allowList.set(network);
  for (const host of always)
    if (!wanted.hosts.includes(host) && hosts.includes(host)) await kept?.remove(host);
  await conversation.changeSetting({ setting: { ...conversation.setting, network } });
  show(notice(`allowed from now on: ${listText(wanted.hosts)}`));
}

type ChangedHosts = { kind: "changed"; hosts: readonly string[] } | { kind: "refused"; reason: string };

/** The list after `allow HOST`, `deny HOST` or `none`. */
function changedHosts(argument: string, hosts: readonly string[]): ChangedHosts {
  const [verb = "", host = "", ...more] = argument.split(/\s+/);
  if (verb === "none" && host === "") return { kind: "changed", hosts: [] };
  if ((verb !== "allow" && verb !== "deny") || host === "" || more.length > 0)
    return { kind: "refused", reason: `/network ${argument} cannot be understood` };
  const pattern = normalPattern(host);
  if (pattern.kind === "refused") return pattern;
  const others = hosts.filter((entry) => entry !== pattern.text);
  if (verb === "allow") return { kind: "changed", hosts: [...others, pattern.text] };
  if (others.length === hosts.length)
    return { kind: "refused", reason: `the list has no entry ${pattern.text}, only: ${listText(hosts)}` };
  return { kind: "changed", hosts: others };
}

async function overview(
  hosts: readonly string[],
  { parts, signal, always }: { parts: SlashParts; signal: AbortSignal; always: readonly string[] },
): Promise<Block> {
  const { sessionFile } = parts.conversation;
  const entries = [];
  // The file is created with the first turn.
  if (sessionFile !== null && existsSync(sessionFile))
    for await (const entry of egressOf(readSessionLines(sessionFile, { signal }))) entries.push(entry);
  const last = mergedEntries(entries).slice(-SHOWN_ATTEMPTS);
  const rows = last.map((entry) => {
    const [, , , program = "", host = "", request = "", outcome = "", reason = ""] = egressRow(entry);
    return [host, [outcome, reason, program, request].filter((text) => text !== "").join("  ")] as const;
  });
  const kept =
    always.length === 0
      ? []
      : [["always here", `${listText(always)}  (/network deny HOST removes it)`] as const];
  return { kind: "report", title: "network", rows: [["allowed", listText(hosts)], ...kept, ...rows] };
}

function listText(hosts: readonly string[]): string {
  return hosts.length === 0 ? "no hosts" : hosts.join(", ");
}
