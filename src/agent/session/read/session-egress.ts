import { z } from "zod";
import type { EgressEntry } from "../../../sandbox/index.js";
import type { SessionLine } from "./session-lines.js";

const count = z.int().nonnegative();
const shortText = z.string().max(1000);

/** A session file may come from anywhere, so each field is checked. */
const wire = z
  .looseObject({
    started_at: z.iso.datetime(),
    count: z.int().positive(),
    // Files of earlier versions do not say it.
    phase: z.enum(["setup", "run"]).catch("run"),
    call_id: shortText.nullish(),
    program: shortText.nullish(),
    way: z.enum(["http", "connect", "socks", "direct", "name"]).nullish().catch(null),
    host: shortText.nullish(),
    port: z.int().min(0).max(65_535).nullish(),
    method: shortText.nullish(),
    path: shortText.nullish(),
    outcome: z.enum(["allowed", "denied", "failed"]),
    reason: shortText.nullish(),
    message: z.string().max(2000).nullish(),
    rule: shortText.nullish(),
    bytes_out: count.catch(0),
    bytes_in: count.catch(0),
    duration_ms: z.number().nonnegative().catch(0),
  })
  .transform((entry): EgressEntry => {
    return {
      startedAtMs: Date.parse(entry.started_at),
      count: entry.count,
      phase: entry.phase,
      callId: entry.call_id ?? null,
      program: entry.program ?? null,
      way: entry.way ?? null,
      host: entry.host ?? null,
      port: entry.port ?? null,
      method: entry.method ?? null,
      path: entry.path ?? null,
      outcome: entry.outcome,
      reason: entry.reason ?? null,
      message: entry.message ?? null,
      rule: entry.rule ?? null,
      bytesOut: entry.bytes_out,
      bytesIn: entry.bytes_in,
      durationMs: entry.duration_ms,
    };
  });

/** Attempts of the session's programs to reach something, in the order in which they ended. A record that cannot be read is left out. */
export async function* egressOf(lines: AsyncIterable<SessionLine>): AsyncIterable<EgressEntry> {
  for await (const line of lines) {
    if (line.kind !== "record" || line.record.type !== "brig") continue;
    if (line.record.name !== "egress_attempt") continue;
    const read = wire.safeParse(line.record.payload);
    if (read.success) yield read.data;
  }
}
