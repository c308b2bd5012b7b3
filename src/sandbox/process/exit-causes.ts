import { namesByNumber } from "../../lib/names-by-number.js";
import { protocolError } from "../channel/frames.js";
import { CAUSE_HEAD_BYTES, CauseFlag, CauseKind } from "../channel/protocol.js";
import type { CallCause } from "../output/call-cause.js";

const kinds = namesByNumber(CauseKind);

interface CauseRecord {
  kind: keyof typeof CauseKind;
  flags: number;
  /** The limit in bytes, processes or files; null if it is not known. */
  limit: number | null;
  /** The share of the command's time, in thousandths. */
  share: number;
  path: string;
}

/** Reads what follows the head of a failed command's EXIT. Error: `protocol.invalid`. */
export function parseCauses(bytes: Buffer): CallCause[] {
  const causes: CallCause[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = at + CAUSE_HEAD_BYTES;
    if (end > bytes.length) throw protocolError("a cause of a failure that is cut off");
    const pathEnd = end + bytes.readUInt16LE(at + 2);
    const kind = kinds.get(bytes.readUInt8(at));
    if (pathEnd > bytes.length || !kind) throw protocolError("a cause of a failure that cannot be read");
    const limit = Number(bytes.readBigUInt64LE(at + 4));
    causes.push(
      causeOf({
        kind,
        flags: bytes.readUInt8(at + 1),
        limit: limit === 0 || !Number.isSafeInteger(limit) ? null : limit,
        share: bytes.readUInt16LE(at + 12),
        path: bytes.toString("utf8", end, pathEnd),
      }),
    );
    at = pathEnd;
  }
  return causes;
}

function causeOf({ kind, flags, limit, share, path }: CauseRecord): CallCause {
  switch (kind) {
    case "memory":
      return flags & CauseFlag.outside
        ? { kind: "machine-memory" }
        : { kind: "memory-limit", limitBytes: limit };
    case "processes":
      return { kind: "process-limit", limit: flags & CauseFlag.outside ? null : limit };
    case "cpu":
      return {
        kind: "cpu-limit",
        cpus: limit === null ? null : limit / 1000,
        share: Math.min(share / 1000, 1),
      };
    case "fullMemory":
    case "fullDisk":
      return {
        kind: kind === "fullMemory" ? "full-directory" : "disk-full",
        path,
        lacks: flags & CauseFlag.files ? "files" : "bytes",
        limit: limit ?? 0,
        wasFull: (flags & CauseFlag.before) !== 0,
      };
    default:
      return kind satisfies never;
  }
}
