import { expect, it } from "vitest";
import { resolveLimits } from "../../../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../../../src/sandbox/policy/load-policy.js";
import { engine } from "./plan-fixture.js";

const KIB = 1024;
const MIB = 1024 * KIB;

it("on a small machine, empty files take at most an eighth of the memory: a kibibyte each", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const memoryBytes = 256 * MIB;
  const { limits, inodes } = resolveLimits(policy, { engine: { ...engine, memoryBytes } });
  expect(limits.memoryBytes).toBe(memoryBytes);
  const files = policy.tmpfs.reduce((sum, { maxInodes }) => sum + inodes(maxInodes), limits.shmInodes);
  expect(files * KIB).toBeLessThanOrEqual(memoryBytes / 8);
  expect(files * KIB).toBeGreaterThan((memoryBytes / 8) * 0.99);
});

it("on a large machine, the limits of files are the policy's", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const { inodes } = resolveLimits(policy, { engine });
  for (const { maxInodes } of policy.tmpfs) expect(inodes(maxInodes)).toBe(maxInodes);
});

it("a smaller memory limit shrinks every directory in memory, so that they leave half of it to commands", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const { limits, inMemory } = resolveLimits(policy, { engine, limits: { memoryMb: 512 } });
  expect(limits.memoryBytes).toBe(512 * MIB);
  expect(inMemory(1024)).toBe(128 * MIB);
  expect(limits.shmBytes).toBe(16 * MIB);
  const inMemoryBytes = policy.tmpfs.reduce((sum, { sizeMb }) => sum + inMemory(sizeMb), limits.shmBytes);
  expect(inMemoryBytes).toBeLessThanOrEqual(limits.memoryBytes / 2);
});

it("a larger memory limit than the policy's leaves its directories as large as the policy says", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const { limits, inMemory } = resolveLimits(policy, { engine, limits: { memoryMb: 16_384 } });
  expect(limits.memoryBytes).toBe(16_384 * MIB);
  expect(inMemory(1024)).toBe(1024 * MIB);
  expect(limits.shmBytes).toBe(policy.limits.shmMb * MIB);
});

it("limits that are not set are the policy's, and none is above what the machine has", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const only = (limits: object) => resolveLimits(policy, { engine, limits }).limits;
  expect(only({ pids: 50 })).toMatchObject({ pids: 50, nanoCpus: 4e9, memoryBytes: 4096 * MIB });
  expect(only({ cpus: 0.5 })).toMatchObject({ pids: 1024, nanoCpus: 5e8 });
  expect(only({ cpus: 1000, memoryMb: 1e9 })).toMatchObject({
    nanoCpus: engine.cpus * 1e9,
    memoryBytes: engine.memoryBytes,
  });
});

it("no directory shrinks to nothing, which the kernel would take for no limit at all", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const small = { ...policy, limits: { ...policy.limits, memoryMb: 1_000_000, shmMb: 1 } };
  const { limits, inMemory, inodes } = resolveLimits(small, { engine, limits: { memoryMb: 64 } });
  expect(inMemory(1)).toBeGreaterThan(0);
  expect(limits.shmBytes).toBeGreaterThan(0);
  expect(inodes(16)).toBeGreaterThan(0);
});
