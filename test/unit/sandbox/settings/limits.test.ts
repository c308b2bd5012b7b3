import { expect, it } from "vitest";
import { inMode, resolveRun } from "../../../../src/agent/open/run-settings.js";
import { agentSettings, sessionHost } from "../../../../src/command/flags/agent-settings.js";
import { readEnvironment } from "../../../../src/lib/env.js";
import { resolveSettings, withFullAccess } from "../../../../src/sandbox/settings/resolve-settings.js";
import { testContext } from "../../../support/cli-context.js";
import { planFor } from "../plan/plan-fixture.js";

const limits = { memoryMb: 512, cpus: 0.5, pids: 64 };

it("limits stay in force where a session gets full access, which has a policy of its own", async () => {
  const environment = readEnvironment({ HOME: "/home/user" });
  const settings = await resolveSettings({ limits, workspace: null, environment });
  expect((await withFullAccess(settings)).limits).toEqual(limits);
});

it("limits of flags stay in force when a conversation changes its mode", async () => {
  const flags = { workspace: "none", memory: 512, cpus: 0.5, pids: 64 };
  const context = testContext();
  const settings = await agentSettings(flags, context);
  const run = await resolveRun(settings, sessionHost(context), {
    usualApproval: "never",
    beginsSession: true,
  });
  expect(run.sandbox.limits).toEqual(limits);
  expect((await inMode(run, "danger-full-access")).sandbox.limits).toEqual(limits);
});

it("limits are what the container is asked for, and what the kernel is compared with", async () => {
  const plan = await planFor(null, { limits });
  expect(plan.limits).toMatchObject({ memoryBytes: 512 * 1024 ** 2, nanoCpus: 5e8, pids: 64 });
  const inMemory = plan.tmpfs.reduce((sum, { sizeBytes }) => sum + sizeBytes, plan.limits.shmBytes);
  expect(inMemory).toBeLessThanOrEqual(plan.limits.memoryBytes / 2);
});
