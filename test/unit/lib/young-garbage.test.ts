import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { YoungGarbage } from "../../../src/lib/young-garbage.js";

const MIB = 1024 * 1024;
const PIECE = 64 * 1024;

/** Allocates and drops this much in pieces; returns how far the bytes held in buffers rose meanwhile. */
function pass(totalBytes: number, onPiece: (bytes: number) => void): number {
  const before = process.memoryUsage().arrayBuffers;
  let most = before;
  for (let passed = 0; passed < totalBytes; passed += PIECE) {
    Buffer.allocUnsafeSlow(PIECE);
    onPiece(PIECE);
    most = Math.max(most, process.memoryUsage().arrayBuffers);
  }
  return most - before;
}

describe("the garbage of a long stream", () => {
  it("stays within a few megabytes, however much passes", () => {
    const garbage = new YoungGarbage();
    expect(pass(128 * MIB, (bytes) => garbage.add(bytes))).toBeLessThan(12 * MIB);
  });

  it("leaves no gc function behind in the contexts that a program makes", () => {
    const garbage = new YoungGarbage();
    garbage.add(64 * MIB);
    expect(runInNewContext("typeof gc")).toBe("undefined");
    expect(typeof Reflect.get(globalThis, "gc")).toBe("undefined");
  });
});
