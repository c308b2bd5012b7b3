import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import { beforeAll, describe, expect, it } from "vitest";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { policySchema } from "../../../../src/sandbox/policy/policy.js";

/** As it is written. */
let policy: { limits: object; tmpfs: object[] };
beforeAll(async () => {
  const { file } = await loadPolicy("workspace-write");
  policy = parse(readFileSync(file, "utf8")) as typeof policy;
});

const isTaken = (changed: object) => policySchema.safeParse({ ...policy, ...changed }).success;
const withLimit = (limit: object) =>
  isTaken({ tmpfs: [], rootfs: "rw", limits: { ...policy.limits, shmMb: 1, ...limit } });
const withTmpfs = (changed: object) =>
  isTaken({ tmpfs: policy.tmpfs.map((one) => ({ ...one, ...changed })) });

describe("the smallest limits of a policy", () => {
  it.each([
    ["memoryMb", 64, 63],
    ["cpus", 0.01, 0.009],
    ["pids", 16, 15],
    ["openFiles", 64, 63],
    ["shmMb", 1, 0],
    ["coreMb", 0, -1],
  ])("%s may be %d and not %d", (name, least, less) => {
    expect(withLimit({ [name]: least })).toBe(true);
    expect(withLimit({ [name]: less })).toBe(false);
  });

  it("of a directory in memory are one MiB and sixteen files", () => {
    expect([withTmpfs({ sizeMb: 1 }), withTmpfs({ sizeMb: 0 })]).toEqual([true, false]);
    expect([withTmpfs({ maxInodes: 16 }), withTmpfs({ maxInodes: 15 })]).toEqual([true, false]);
  });

  it("leave half of the memory to commands when everything else in it is full", () => {
    const limits = { ...policy.limits, memoryMb: 100, shmMb: 20 };
    const [first] = policy.tmpfs;
    const inMemory = (sizeMb: number) => isTaken({ limits, rootfs: "rw", tmpfs: [{ ...first, sizeMb }] });
    expect([inMemory(30), inMemory(31)]).toEqual([true, false]);
  });
});
