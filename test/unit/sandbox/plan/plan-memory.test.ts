import { expect, it } from "vitest";
import { loadPolicy } from "../../../../src/policy/load-policy.js";
import { resolveLimits } from "../../../../src/sandbox/plan/plan-memory.js";
import { engine } from "./plan-fixture.js";

const KIB = 1024;
const MIB = 1024 * KIB;

it("on a small machine, empty files take at most an eighth of the memory: a kibibyte each", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const memoryBytes = 256 * MIB;
  const { limits, inodes } = resolveLimits(policy, { ...engine, memoryBytes });
  expect(limits.memoryBytes).toBe(memoryBytes);
  const files = policy.tmpfs.reduce((sum, { maxInodes }) => sum + inodes(maxInodes), limits.shmInodes);
  expect(files * KIB).toBeLessThanOrEqual(memoryBytes / 8);
  expect(files * KIB).toBeGreaterThan((memoryBytes / 8) * 0.99);
});

it("on a large machine, the limits of files are the policy's", async () => {
  const { policy } = await loadPolicy("workspace-write");
  const { inodes } = resolveLimits(policy, engine);
  for (const { maxInodes } of policy.tmpfs) expect(inodes(maxInodes)).toBe(maxInodes);
});
