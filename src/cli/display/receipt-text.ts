import { neutraliseLine } from "../../lib/terminal/terminal.js";
import type { SessionReceipt } from "../../session/receipts.js";

/** Lines that are shown; `--json` and the session file have all. */
const SHOWN = 20;

const reasonWords: Readonly<Record<string, string>> = {
  runs: "runs or is obeyed without being asked",
  repository: "a git repository, whose settings git obeys",
  setuid: "setuid or setgid",
  capabilities: "has capabilities",
  device: "a device",
  owner: "belongs to another user",
};

const incompleteWords: Readonly<Record<string, string>> = {
  time: "there was not enough time to look at everything",
  closed: "some directories could not be looked into",
  gone: "the sandbox had ended before anybody could look",
  failed: "the sandbox did not answer",
};

/** What a person should look at before anything in the workspace is run; empty where there is nothing to tell. */
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
  if (incomplete !== undefined) lines.push(`  not complete: ${incomplete}`);
  if (lines.length === 0) return "";
  return ["brig: made or changed in this session; look before you run anything there:", ...lines, ""].join(
    "\n",
  );
}
