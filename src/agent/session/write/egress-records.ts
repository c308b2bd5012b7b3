import type { EgressEntry } from "../../../sandbox/index.js";
import type { SessionSetting } from "../setting.js";
import type { SessionRecord } from "./session-file.js";

/** Records the network of a sandbox. Attempts are only logged with an allow-list: otherwise brig does not see them. */
export function egressRecord(sandboxId: string, network: SessionSetting["network"]): SessionRecord {
  const isLogged = network.kind === "allowlist";
  return {
    type: "brig.egress",
    payload: {
      ...{ sandbox_id: sandboxId, network: network.kind },
      ...(isLogged ? { hosts: network.hosts } : {}),
      log: isLogged ? ATTEMPTS : null,
    },
  };
}

const ATTEMPTS = "brig.egress_attempt";

export function egressAttemptRecord(entry: EgressEntry): SessionRecord {
  return { type: ATTEMPTS, payload: wireEntry(entry) };
}

/** The fields of an entry as session files and the events of `--json` name them. */
export function wireEntry(entry: EgressEntry): Readonly<Record<string, unknown>> {
  return {
    started_at: new Date(entry.startedAtMs).toISOString(),
    count: entry.count,
    phase: entry.phase,
    call_id: entry.callId,
    program: entry.program,
    way: entry.way,
    host: entry.host,
    port: entry.port,
    method: entry.method,
    path: entry.path,
    outcome: entry.outcome,
    reason: entry.reason,
    message: entry.message,
    rule: entry.rule,
    bytes_out: entry.bytesOut,
    bytes_in: entry.bytesIn,
    duration_ms: entry.durationMs,
  };
}
