import { BrigError } from "../../../errors.js";
import type { EndReason, LastingRecord } from "../home/lasting-records.js";

const REASONS: Readonly<Record<EndReason, string>> = {
  stopped: "it was stopped",
  idle: "nobody used it for as long as --idle says",
  "max-life": "it has lived for as long as --max-life says",
  ended: "its container has ended",
  "owner-stopped": "the process that kept it was asked to end",
  "owner-killed": "the process that kept it was killed or has crashed, and its container ends with it",
};

/** Why nothing can be done in a sandbox that has a name and does not run. */
export function endedError({ name, reason }: Pick<LastingRecord, "name" | "reason">): BrigError {
  const why = reason === null ? "the process that kept it has ended" : REASONS[reason];
  return new BrigError(`the sandbox ${name} does not run any more: ${why}`, {
    code: "sandbox.gone",
    reason: reason === "owner-killed" ? "lease" : "closed",
    hint: `to have the name again: brig rm ${name}, then brig up --name ${name}`,
  });
}
