import { describe, expect, it } from "vitest";
import { baseOf, hostConflict, isSameBase } from "../../../../src/sandbox/changes/host-conflict.js";
import type { HostBase, SeenChange } from "../../../../src/sandbox/changes/workspace-change.js";
import type { BaseState, PresentState } from "../../../../src/sandbox/tree/tree-changes.js";
import { baseState, presentState } from "../overlay/played-tree.js";

const file = baseState({ ino: 1n, dev: 2n, sizeBytes: 3, modifiedNs: 4n, changedNs: 5n });
const directory = baseState({ type: "directory", mode: 0o755, ino: 1n });
const differences: [string, Partial<BaseState>][] = [
  ["inode", { ino: 9n }],
  ["device", { dev: 9n }],
  ["size", { sizeBytes: 9 }],
  ["time", { modifiedNs: 9n }],
  ["time of change", { changedNs: 9n }],
  ["type", { type: "symlink" }],
];

describe("the base of a change", () => {
  it("is what the host has, unless it was changed after a time when the sandbox had not yet changed it", () => {
    expect(baseOf(file, 5n)).toEqual({ state: file, unchangedNs: 5n });
    expect(baseOf(file, 4n)).toEqual({ state: "unknown", unchangedNs: 4n });
    expect(baseOf(null, 4n)).toEqual({ state: null, unchangedNs: 4n });
    // The time of a directory changes with every name in it.
    expect(baseOf({ ...directory, changedNs: 9n }, 4n).state).toEqual({ ...directory, changedNs: 9n });
  });

  const base = (state: HostBase["state"]): HostBase => ({ state, unchangedNs: 0n });

  it("is the same one if nothing about it differs", () => {
    expect(isSameBase(base(file), { state: { ...file }, unchangedNs: 9n })).toBe(true);
    expect(isSameBase(base(file), base({ ...file, mode: 0o600 }))).toBe(true);
    expect(isSameBase(base(null), base(null))).toBe(true);
    expect(isSameBase(base("unknown"), base("unknown"))).toBe(true);
    for (const [one, other] of [
      [null, "unknown"],
      [file, null],
      [file, "unknown"],
    ] as const) {
      expect(isSameBase(base(one), base(other))).toBe(false);
      expect(isSameBase(base(other), base(one))).toBe(false);
    }
  });

  it.each(differences)("is another one with another %s", (_name, other) => {
    expect(isSameBase(base(file), base({ ...file, ...other }))).toBe(false);
  });
});

describe("a change conflicts with the host's", () => {
  const conflict = (
    state: HostBase["state"],
    before: BaseState | null,
    now: PresentState | null = presentState(),
  ) => hostConflict({ path: Buffer.from("a"), base: { state, unchangedNs: 0n }, before, now } as SeenChange);

  it("not if the host has what it had", () => {
    expect(conflict(null, null)).toBeNull();
    expect(conflict(file, { ...file, mode: 0o600 })).toBeNull();
    expect(conflict(directory, { ...directory, ino: 9n, changedNs: 9n, sizeBytes: 9 })).toBeNull();
  });

  it.each(differences.slice(0, -1))("if a file has another %s", (_name, other) => {
    expect(conflict(file, { ...file, ...other })).toBe("it was changed on the host meanwhile");
  });

  it("if a directory has another mode", () => {
    expect(conflict(directory, { ...directory, mode: 0o700 })).toBe("it was changed on the host meanwhile");
  });

  it("if the host has something else, nothing, or something where nothing was", () => {
    expect(conflict(file, { ...file, type: "fifo" })).toBe("it has become a fifo on the host meanwhile");
    expect(conflict(directory, { ...file })).toBe("it has become a file on the host meanwhile");
    expect(conflict(file, null)).toBe("it was deleted on the host meanwhile");
    expect(conflict(null, file)).toBe("it was created on the host meanwhile");
  });

  it("not if both have made a directory", () => {
    const made = presentState({ type: "directory" });
    expect(conflict(null, directory, made)).toBeNull();
    expect(conflict(null, file, made)).toBe("it was created on the host meanwhile");
    expect(conflict(null, directory, presentState())).toBe("it was created on the host meanwhile");
    expect(conflict(null, directory, null)).toBe("it was created on the host meanwhile");
  });

  it("if it is unknown which of the two came first", () => {
    expect(conflict("unknown", file)).toBe("it was changed on the host meanwhile");
    expect(conflict("unknown", null)).toBe("it was changed on the host meanwhile");
  });
});
