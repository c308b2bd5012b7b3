import { protocolError } from "../channel/frames.js";
import { isBelow } from "../paths.js";
import type { Finding, FindingReason, Receipt } from "./receipt.js";

const HEAD_BYTES = 56;
const DIGEST_AT = 24;
const MAX_RECORDS = 500;
const NEUTRALISED = 64;
const HASHED = 128;
const REASONS: readonly (readonly [number, FindingReason])[] = [
  [1, "runs"],
  [2, "setuid"],
  [4, "device"],
  [8, "capabilities"],
  [16, "owner"],
  [32, "repository"],
];
const ENDS: readonly Receipt["incomplete"][] = [null, "time", "closed", "failed"];

/** Reads the runner's records, as PROTOCOL.md has them. Error: `protocol.invalid` for anything else. */
export function parseReceipt(records: Buffer, result: Buffer, roots: readonly string[]): Receipt {
  const incomplete = result.length === 16 ? ENDS[result.readUInt32LE(12)] : undefined;
  if (incomplete === undefined) throw protocolError("a receipt without a proper end");
  const findings: Finding[] = [];
  for (let at = 0; at < records.length; ) {
    const pathAt = at + HEAD_BYTES;
    const end = pathAt <= records.length ? pathAt + records.readUInt16LE(at + 2) : Number.POSITIVE_INFINITY;
    if (end > records.length || findings.length >= MAX_RECORDS)
      throw protocolError("a record of a receipt that is cut off, or one too many");
    findings.push(parseFinding(records.subarray(at, end), roots));
    at = end;
  }
  return { findings, omitted: result.readUInt32LE(8), incomplete };
}

function parseFinding(record: Buffer, roots: readonly string[]): Finding {
  const flags = record.readUInt16LE(0);
  const path = record.toString("utf8", HEAD_BYTES);
  if (!roots.some((root) => isBelow(path, root))) throw protocolError("a receipt for another place");
  const isHashed = (flags & HASHED) !== 0;
  return {
    path,
    reasons: REASONS.flatMap(([bit, reason]) => ((flags & bit) === 0 ? [] : [reason])),
    mode: record.readUInt32LE(4) & 0o7777,
    uid: record.readUInt32LE(8),
    sizeBytes: Number(record.readBigUInt64LE(16)),
    sha256: isHashed ? record.toString("hex", DIGEST_AT, HEAD_BYTES) : null,
    isNeutralised: (flags & NEUTRALISED) !== 0,
  };
}
