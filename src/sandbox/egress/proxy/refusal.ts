import type { Duplex } from "node:stream";
import { dropRest, reset } from "../join.js";
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

/** Writes to a connection that has no response object: the tunnel or upgrade was not made, and nothing follows. */
export function writeRefusal(stream: Duplex, { status, outcome, text }: Refusal): void {
  if (stream.destroyed || !stream.writable) {
    reset(stream);
    return;
  }
  const body = Buffer.from(text);
  stream.on("error", () => undefined);
  stream.end(
    `HTTP/1.1 ${status} ${reasons[status] ?? "Error"}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nX-Brig-Egress: ${outcome}\r\nConnection: close\r\n\r\n${text}`,
  );
  dropRest(stream);
}

const reasons: Record<number, string> = {
  400: "Bad Request",
  403: "Forbidden",
  405: "Method Not Allowed",
  421: "Misdirected Request",
  431: "Request Header Fields Too Large",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
};
