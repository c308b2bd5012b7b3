/** The state of one path in the answer to a copy. */
export function copyState({ outcome = 1, ino = 0n, size = 0n, changedNs = 0n } = {}): Buffer {
  const state = Buffer.alloc(32);
  state.writeUInt8(outcome, 0);
  state.writeBigUInt64LE(ino, 8);
  state.writeBigUInt64LE(size, 16);
  state.writeBigInt64LE(changedNs, 24);
  return state;
}
