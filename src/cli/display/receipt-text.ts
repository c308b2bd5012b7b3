import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { SessionReceipt } from "../../session/receipts.js";

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

const incompleteWords: Readonly<Record<string, string>> = {
  time: "there was not enough time to check everything",
  closed: "some directories could not be read",
  gone: "the sandbox ended before it could be checked",
  failed: "the sandbox did not answer",
};

/** Lists files to review before anything in the workspace is run. Empty if there are none. */
export function receiptText(receipt: SessionReceipt): string {
  const { findings, omitted } = receipt;
  const incomplete = receipt.incomplete === null ? undefined : incompleteWords[receipt.incomplete];
  const hidden = Math.max(findings.length - SHOWN, 0) + omitted;
  const lines = findings.slice(0, SHOWN).map(({ path, reasons, sha256, isNeutralised }) => {
    const words = reasons.map((reason) => reasonWords[reason] ?? reason).join(", ");
    const digest = sha256 === null ? "" : ` (sha256 ${sha256.slice(0, 12)}…)`;
    return `  ${neutraliseLine(path)}: ${words}${isNeutralised ? "; taken away" : ""}${digest}`;
  });
  if (hidden > 0) lines.push(`  and ${hidden} more`);
  if (incomplete !== undefined) lines.push(`  this list is incomplete: ${incomplete}`);
  if (lines.length === 0) return "";
  const title = "brig: this session made or changed these files; review them before you run anything there:";
  return [title, ...lines, ""].join("\n");
}
