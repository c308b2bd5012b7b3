import { CHANGES_RECORD_BYTES } from "../../src/sandbox/channel/protocol.js";

export interface RecordState {
  type: number;
  mode?: number;
  size?: bigint;
  /** Default: the size. */
  allocated?: bigint;
  ino?: bigint;
  links?: number;
  uid?: number;
  gid?: number;
  modifiedNs?: bigint;
  changedNs?: bigint;
  /** Only of what was there before. */
  dev?: bigint;
  target?: string;
}

/** A record of a scan as the runner writes it, or as it never would. */
export function changeRecord({
  change,
  path,
  now,
  before,
  below = 0n,
  reserved = 0,
}: {
  change: number;
  path: string;
  now?: RecordState;
  before?: RecordState;
  below?: bigint;
  reserved?: number;
}): Buffer {
  const head = Buffer.alloc(CHANGES_RECORD_BYTES);
  const [pathBytes, target] = [Buffer.from(path, "latin1"), Buffer.from(now?.target ?? "", "latin1")];
  head.set([change, now?.type ?? 0, before?.type ?? 0, reserved]);
  head.writeUInt32LE(pathBytes.length, 4);
  head.writeUInt32LE(target.length, 8);
  head.writeUInt32LE(now?.mode ?? 0, 12);
  head.writeUInt32LE(now?.uid ?? 0, 16);
  head.writeUInt32LE(now?.gid ?? 0, 20);
  head.writeUInt32LE(now?.links ?? 0, 24);
  head.writeUInt32LE(before?.mode ?? 0, 28);
  head.writeBigUInt64LE(now?.size ?? 0n, 32);
  head.writeBigInt64LE(now?.modifiedNs ?? 0n, 40);
  head.writeBigInt64LE(now?.changedNs ?? 0n, 48);
  head.writeBigUInt64LE(now?.ino ?? 0n, 56);
  head.writeBigUInt64LE(before?.size ?? 0n, 72);
  head.writeBigInt64LE(before?.modifiedNs ?? 0n, 80);
  head.writeBigInt64LE(before?.changedNs ?? 0n, 88);
  head.writeBigUInt64LE(before?.ino ?? 0n, 96);
  head.writeBigUInt64LE(before?.dev ?? 0n, 104);
  head.writeBigUInt64LE(below, 112);
  head.writeBigUInt64LE(now?.allocated ?? now?.size ?? 0n, 120);
  return Buffer.concat([head, pathBytes, target]);
}
