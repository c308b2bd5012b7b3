import { getSystemErrorName } from "node:util";
import type { Command } from "commander";
import type { SessionProof } from "../../agent/index.js";
import { proofsOf, readSessionLines } from "../../agent/index.js";
import type { CliContext } from "../../command/index.js";
import { say, write } from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import { jsonText } from "../../lib/json/json-text.js";
import { formatTable } from "../../lib/terminal/table.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import { clipped } from "../../sandbox/index.js";
import { addSessionArgument, type FileOfSession, type SessionChoice } from "../sessions/chosen-session.js";

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

const VALUE_CHARS = 400;

/** Makes every text visible and safe for a terminal, because a session file may contain anything. */
function proofText({ sandbox, image, isEscalated, proof }: SessionProof): string {
  const { policy, differences, notProvable, summary, engine, runtime, imageId, egress } = proof;
  const verdict = differences.length === 0 ? "confirmed by the kernel" : "NOT confirmed by the kernel";
  const fact = (name: string) => summary[name] ?? "unknown";
  const rows = [
    ["sandbox", sandbox + (isEscalated ? ", for commands that were allowed full access" : "")],
    ["policy", `${policy}, ${verdict} before the first command`],
    ["engine", `${engine.product} ${engine.version} with ${runtime}, kernel ${engine.kernel}`],
    ["image", `${image ?? "without a name"} (${imageId.slice(0, 19)}…)`],
    ["user", `${fact("uid")}:${fact("gid")}, groups ${fact("groups")}`],
    ["capabilities", capabilities(fact("capabilities"))],
    ["new privileges", fact("noNewPrivileges") === "true" ? "cannot be gained" : "can be gained"],
    ["system calls", fact("seccompMode") === "2" ? "filtered" : "not filtered"],
    ["interfaces", fact("interfaces") === "lo" ? "loopback alone" : fact("interfaces")],
    ["mounts", `${fact("mounts")}, compared one by one`],
    ["memory", `${bytes(fact("memoryBytes"))} at most, ${swap(fact("swapBytes"))}`],
    ["processes", `${fact("pids")} at most, on ${fact("cpus")} processors`],
    ...egressRows(egress),
    ...refusals(fact("probes")),
    ...differences.map((one) => ["difference", differenceText(one)]),
    ...notProvable.map((one) => ["not provable", `${differenceText(one)}: ${one.reason}`]),
  ];
  return formatTable(
    rows.map(([name = "", value = ""]) => [name, clipped(visibleLine(value), VALUE_CHARS)]),
    { columns: undefined },
  );
}

/** The rows about what brig's proxy enforces. A proof has the names of secrets and canaries, and no values. */
function egressRows(egress: SessionProof["proof"]["egress"]): string[][] {
  const { ruledHosts = [], secrets = [], awsKeys = [], canaries = [] } = egress ?? {};
  return [
    ...(ruledHosts.length > 0 ? [["requests", `ruled by brig to ${ruledHosts.join(", ")}`]] : []),
    ...secrets.map(({ name, hosts }) => ["secret outside", `${name}, for ${hosts.join(", ")}`]),
    ...awsKeys.map(({ name, hosts }) => ["keys outside", `${name}, which sign for ${hosts.join(", ")}`]),
    ...(canaries.length > 0 ? [["canaries", canaries.join(", ")]] : []),
  ];
}

/** The five sets of a process, e.g. `CapInh 0, CapPrm 0`. */
function capabilities(sets: string): string {
  return /^(?:Cap\w+ 0(?:, |$))+$/.test(sets) ? "none" : sets;
}

function bytes(count: string): string {
  return /^\d{1,15}$/.test(count) ? formatBytes(Number(count)) : count;
}

function swap(count: string): string {
  return count === "0" ? "no swap" : `${bytes(count)} of swap`;
}

/** Harmless attempts at system calls, e.g. `bpf 1, statx 0`: with 0 it was possible, else this is its error. */
function refusals(probes: string): string[][] {
  const names = new Map<string, string[]>();
  for (const [, name = "", errno = "0"] of probes.matchAll(/([a-z0-9-]{1,40}) (\d{1,4})(?:, |$)/g))
    if (Number(errno) > 0) names.set(errno, [...(names.get(errno) ?? []), name]);
  return [...names].map(([errno, attempts]) => [
    `tried: ${getSystemErrorName(-Number(errno))}`,
    attempts.join(", "),
  ]);
}

function differenceText(one: { assertion: string; promised: string; kernel: string }): string {
  return `${one.assertion}: promised ${one.promised}, the kernel says ${one.kernel}`;
}
