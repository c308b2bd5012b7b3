import type { SessionBranchArrival, SessionReceipt } from "../agent/index.js";
import { neutraliseLine } from "../lib/terminal/terminal.js";

/** How many findings are shown; `--json` and the session file have them all. */
const SHOWN = 20;

const reasonWords: Readonly<Record<string, string>> = {
  runs: "can run by itself, or change what runs",
  repository: "a git repository, whose settings git follows",
  setuid: "setuid or setgid",
  capabilities: "has capabilities",
  device: "a device",
  owner: "belongs to another user",
};

/** For findings that have no name; see `FindingCount`. */
const countWords: Readonly<Record<string, string>> = {
  setuid: "files with special rights",
  repository: "git repositories",
  owner: "files of other users",
};

const incompleteWords: Readonly<Record<string, string>> = {
  time: "there was not enough time to check everything",
  closed: "some directories could not be read",
  gone: "the sandbox ended before it could be checked",
  failed: "the sandbox did not answer",
};

/** Describes what the session left on the host: its branch, files to review, and kept changes. Empty if it left nothing. */
export function receiptText(receipt: SessionReceipt): string {
  return branchText(receipt.branch) + findingsText(receipt) + changesText(receipt);
}

function branchText(arrival: SessionBranchArrival | undefined): string {
  if (arrival === undefined) return "";
  const lines: string[] = [];
  if (arrival.kind === "failed") {
    lines.push(`brig: the commits did not arrive: ${neutraliseLine(arrival.message)}`);
    if (arrival.hint !== null) lines.push(`  hint: ${neutraliseLine(arrival.hint)}`);
    return `${lines.join("\n")}\n`;
  }
  if (arrival.kind === "nothing-new") lines.push("brig: no new commits were made on the checked-out branch");
  else {
    const count = arrival.commits === 1 ? "1 commit" : `${arrival.commits} commits`;
    lines.push(
      `brig: ${count} arrived as refs/heads/${arrival.branch}; look at them with: git log ${arrival.branch}`,
    );
  }
  if (arrival.notTaken.length > 0)
    lines.push(
      `  not taken, since they were not checked out: ${neutraliseLine(arrival.notTaken.join(", "))}`,
    );
  return `${lines.join("\n")}\n`;
}

function changesText({ changes }: Pick<SessionReceipt, "changes">): string {
  if (changes === undefined) return "";
  const { count, snapshot } = changes;
  const id = snapshot.slice(0, 8);
  return (
    `brig: ${count} changed ${count === 1 ? "path is" : "paths are"} not applied yet: ` +
    `brig diff --id ${id} shows them, brig apply --id ${id} brings them here\n`
  );
}

type Finding = SessionReceipt["findings"][number];

/** Lists files to review before anything in the workspace is run. */
function findingsText(receipt: SessionReceipt): string {
  const { findings, counts = [] } = receipt;
  const incomplete = receipt.incomplete === null ? undefined : incompleteWords[receipt.incomplete];
  const shown = shownFindings(findings);
  const lines = shown.map(findingLine);
  const hidden = findings.length - shown.length + receipt.omitted;
  if (hidden > 0) lines.push(`  and ${hidden} more`);
  for (const { name, count } of counts)
    lines.push(`  in all ${count} of ${countWords[name] ?? neutraliseLine(name)}`);
  if (incomplete !== undefined) lines.push(`  this list is incomplete: ${incomplete}`);
  if (lines.length === 0) return "";
  const title = "brig: this session made or changed these files; review them before you run anything there:";
  return [title, ...lines, ""].join("\n");
}

/** If there are too many, the first finding of each kind is among those shown, so that many of one kind hide no other. */
function shownFindings(findings: readonly Finding[]): readonly Finding[] {
  if (findings.length <= SHOWN) return findings;
  const kinds = new Set<string>();
  return findings.filter(({ reasons, obeyedBy }, at) => {
    const kind = `${reasons.join()} ${obeyedBy}`;
    const isNew = !kinds.has(kind);
    kinds.add(kind);
    return at < SHOWN || isNew;
  });
}

function findingLine({ path, reasons, obeyedBy, sha256, isNeutralised }: Finding): string {
  const words = reasons.map((reason) => reasonWords[reason] ?? reason).join(", ");
  const by = obeyedBy === undefined ? "" : `: ${obeyedBy}`;
  const digest = sha256 === null ? "" : ` (sha256 ${sha256.slice(0, 12)}…)`;
  return `  ${neutraliseLine(path)}: ${words}${by}${isNeutralised ? "; taken away" : ""}${digest}`;
}
