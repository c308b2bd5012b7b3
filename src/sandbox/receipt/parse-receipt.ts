import { protocolError } from "../channel/frames.js";
import {
  RECEIPT_COUNT_BYTES,
  RECEIPT_DIGEST_AT,
  RECEIPT_RECORD_BYTES,
  RECEIPT_RECORDS_MAX,
  RECEIPT_RESULT_BYTES,
  ReceiptEnd,
  ReceiptReason,
} from "../channel/protocol.js";
import { isBelow } from "../plan/paths.js";
import { obeyedNames } from "./obeyed/obeyed-names.js";
import type { Finding, FindingCount, FindingReason, Receipt } from "./receipt.js";

const REASONS: readonly (readonly [number, FindingReason])[] = [
  [ReceiptReason.runs, "runs"],
  [ReceiptReason.setid, "setuid"],
  [ReceiptReason.device, "device"],
  [ReceiptReason.capabilities, "capabilities"],
  [ReceiptReason.foreign, "owner"],
  [ReceiptReason.repository, "repository"],
];
const ENDS: ReadonlyMap<number, Receipt["incomplete"]> = new Map([
  [ReceiptEnd.finished, null],
  [ReceiptEnd.noTime, "time"],
  [ReceiptEnd.closed, "closed"],
  [ReceiptEnd.noStream, "failed"],
]);

/** Parses the runner's records, as PROTOCOL.md defines them. Error: `protocol.invalid`. */
export function parseReceipt(records: Buffer, result: Buffer, roots: readonly string[]): Receipt {
  const isWhole = (result.length - RECEIPT_RESULT_BYTES) % RECEIPT_COUNT_BYTES === 0;
  const hasEnd = isWhole && result.length >= RECEIPT_RESULT_BYTES;
  const incomplete = hasEnd ? ENDS.get(result.readUInt32LE(12)) : undefined;
  if (incomplete === undefined) throw protocolError("a receipt without a proper end");
  const findings: Finding[] = [];
  for (let at = 0; at < records.length; ) {
    const pathAt = at + RECEIPT_RECORD_BYTES;
    const end = pathAt <= records.length ? pathAt + records.readUInt16LE(at + 2) : Number.POSITIVE_INFINITY;
    if (end > records.length || findings.length >= RECEIPT_RECORDS_MAX)
      throw protocolError("a receipt record that is cut off, or one too many");
    findings.push(parseFinding(records.subarray(at, end), roots));
    at = end;
  }
  const counts = parseCounts(result.subarray(RECEIPT_RESULT_BYTES));
  return {
    findings,
    omitted: result.readUInt32LE(8),
    ...(counts.length > 0 && { counts }),
    incomplete,
  };
}

/** The runner's kinds of findings: those with special rights, repositories, one for each name, and files of others. */
const KINDS: readonly string[] = ["setuid", "repository", ...obeyedNames.map(([name]) => name), "owner"];

function parseCounts(counts: Buffer): FindingCount[] {
  return Array.from({ length: counts.length / RECEIPT_COUNT_BYTES }, (_, at) => {
    const name = KINDS[counts.readUInt32LE(at * RECEIPT_COUNT_BYTES)];
    if (name === undefined) throw protocolError("a receipt counts what nobody has asked for");
    return { name, count: counts.readUInt32LE(at * RECEIPT_COUNT_BYTES + 4) };
  });
}

function parseFinding(record: Buffer, roots: readonly string[]): Finding {
  const flags = record.readUInt16LE(0);
  const path = record.toString("utf8", RECEIPT_RECORD_BYTES);
  if (!roots.some((root) => isBelow(path, root))) throw protocolError("a receipt for another directory");
  const obeyedBy = obeyedNames[record.readUInt32LE(12) - 1]?.[1];
  const isHashed = (flags & ReceiptReason.hashed) !== 0;
  return {
    path,
    reasons: REASONS.flatMap(([bit, reason]) => ((flags & bit) === 0 ? [] : [reason])),
    ...(obeyedBy !== undefined && { obeyedBy }),
    mode: record.readUInt32LE(4) & 0o7777,
    uid: record.readUInt32LE(8),
    sizeBytes: Number(record.readBigUInt64LE(16)),
    sha256: isHashed ? record.toString("hex", RECEIPT_DIGEST_AT, RECEIPT_RECORD_BYTES) : null,
    isNeutralised: (flags & ReceiptReason.stripped) !== 0,
  };
}
