import type { SessionReceipt } from "../../../agent/index.js";

/** Titles and texts that tell the user of an editor what a session left on the host. */
export function receiptNotices({
  branch,
  findings,
  omitted,
  incomplete,
}: SessionReceipt): [string, string][] {
  const notices: [string, string][] = [];
  if (branch?.kind === "arrived") notices.push(["new commits have arrived", `see git log ${branch.branch}`]);
  if (branch?.kind === "failed") notices.push(["the new commits have not arrived", branch.message]);
  if (findings.length > 0 || omitted > 0 || incomplete !== null)
    notices.push(["the session has left files that may run by themselves", "see brig sessions show"]);
  return notices;
}
