import { formatBytes } from "../../lib/bytes.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { EgressEntry } from "../../sandbox/index.js";
import { clipped } from "../../sandbox/index.js";

export const egressHeader = [
  ...[
    "TIME",
    "PHASE",
    "CALL",
    "PROGRAM",
    "HOST",
    "REQUEST",
    "OUTCOME",
    "RULE OR REASON",
    "SENT",
    "RECEIVED",
    "COUNT",
  ],
];

const HOST_CHARS = 300;
const REQUEST_CHARS = 80;

/** Makes every text visible and safe for a terminal, because a session file may contain anything. */
export function egressRow(entry: EgressEntry): string[] {
  const { startedAtMs, phase, callId, program, outcome, rule, reason, bytesOut, bytesIn, count } = entry;
  return [
    new Date(startedAtMs).toISOString().slice(0, 19).replace("T", " "),
    phase,
    callId ?? "",
    program ?? "",
    clipped(hostText(entry), HOST_CHARS),
    clipped(requestText(entry), REQUEST_CHARS),
    outcome,
    rule ?? reason ?? "",
    formatBytes(bytesOut),
    formatBytes(bytesIn),
    String(count),
  ].map(visibleLine);
}

function hostText({ host, port }: EgressEntry): string {
  if (host === null) return "(various)";
  return port === null ? host : `${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function requestText({ way, method, path }: EgressEntry): string {
  if (method !== null) return path === null ? method : `${method} ${path}`;
  return way === "name" ? "name lookup" : (way ?? "");
}

export function entryAsJson({ startedAtMs, ...entry }: EgressEntry): object {
  return { startedAt: new Date(startedAtMs).toISOString(), ...entry };
}
