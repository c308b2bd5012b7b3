import { type Denial, describeDenial } from "../rules/denial.js";

export interface Refusal {
  status: number;
  /** The value of the header `x-brig-egress`. */
  outcome: "denied" | "failed" | "malformed";
  text: string;
}

/** `host` is as the program wrote it, made printable. */
export function refusalOf(denial: Denial, host: string): Refusal {
  const text = `brig: ${describeDenial(denial, host)}.\n${adviceFor(denial, host)}`;
  return { status: statusOf(denial), outcome: "denied", text };
}

export function failure(errno: string, host: string): Refusal {
  const status = errno.endsWith("ETIMEDOUT") ? 504 : 502;
  const text = `brig: ${host} is allowed, but cannot be reached: ${reasonOf(errno)}.\n`;
  return { status, outcome: "failed", text };
}

/** Names the upstream proxy if the failure is its answer, and not the host's. */
function reasonOf(errno: string): string {
  const [, ofProxy] = /^PROXY_(.+)$/.exec(errno) ?? [];
  if (ofProxy === undefined) return errno;
  const isStatus = /^\d+$/.test(ofProxy);
  return isStatus
    ? `the upstream proxy answered ${ofProxy}`
    : `the upstream proxy cannot be used: ${ofProxy}`;
}

export function malformed(what: string): Refusal {
  return { status: 400, outcome: "malformed", text: `brig: ${what}.\n` };
}

function statusOf(denial: Denial): number {
  switch (denial.kind) {
    case "malformed":
    case "ambiguous":
      return 400;
    case "method":
      return 405;
    case "other-name":
      return 421;
    case "too-many":
      return 503;
    case "no-rule":
    case "declined":
    case "address":
    case "bare-address":
    case "no-name":
    case "unknown-protocol":
    case "request":
    case "secret":
    case "signing":
    case "canary":
    case "unreadable":
    case "rules-changed":
      return 403;
    default:
      return denial satisfies never;
  }
}

function adviceFor(denial: Denial, host: string): string {
  if (denial.kind === "no-rule" || denial.kind === "rules-changed")
    return `Only the user can allow it, for example with --network allowlist:${host}\n`;
  if (denial.kind === "address")
    return `Only the user can allow it, with a rule for the address: --network allowlist:${host},${denial.address}\n`;
  if (denial.kind === "request" || denial.kind === "secret")
    return "Only the user can allow it, in [egress] of the configuration.\n";
  return "";
}
