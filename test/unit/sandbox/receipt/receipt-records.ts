/** A record of a receipt as the runner writes it. */
export function findingRecord(
  path: string,
  { reasons = 1, mode = 0, uid = 0, rule = 0, size = 0n, sha256 = "00".repeat(32) } = {},
): Buffer {
  const head = Buffer.alloc(56);
  head.writeUInt16LE(reasons, 0);
  head.writeUInt16LE(Buffer.byteLength(path), 2);
  head.writeUInt32LE(mode, 4);
  head.writeUInt32LE(uid, 8);
  head.writeUInt32LE(rule, 12);
  head.writeBigUInt64LE(size, 16);
  head.write(sha256, 24, "hex");
  return Buffer.concat([head, Buffer.from(path)]);
}

export function receiptResult({
  omitted = 0,
  end = 0,
  counts = [],
}: {
  omitted?: number;
  end?: number;
  counts?: readonly (readonly [kind: number, count: number])[];
} = {}): Buffer {
  const result = Buffer.alloc(16 + 8 * counts.length);
  for (const [at, [kind, count]] of counts.entries()) {
    result.writeUInt32LE(kind, 16 + 8 * at);
    result.writeUInt32LE(count, 20 + 8 * at);
  }
  result.writeUInt32LE(omitted, 8);
  result.writeUInt32LE(end, 12);
  return result;
}
