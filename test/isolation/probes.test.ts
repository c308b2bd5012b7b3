import { chmod, chown, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { controlSucceeded, isRefused, permissionFor } from "../../src/sandbox/attack/attempt.js";
import { allAttempts } from "../../src/sandbox/attack/attempts.js";
import {
  type HostTargets,
  type Outcomes,
  openHostTargets,
  openWeakTwin,
  parseOutcomes,
  type WeakTwin,
} from "../../src/sandbox/attack/weak-twin.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { requireToolbox } from "../../src/sandbox/images/require-toolbox.js";
import { loadPolicy } from "../../src/sandbox/policy/load-policy.js";
import { SANDBOX_MODES, type SandboxMode } from "../../src/sandbox/policy/modes.js";
import { testEngine } from "../support/engine.js";
import { becomeHostUser, type HostUser, OWNING_USERS } from "../support/host-users.js";
import { isGvisor } from "../support/runtime-differences.js";
import { openTestSandbox } from "../support/sandbox.js";
import { testLabels } from "../support/test-run.js";
import { LEAVE_THINGS, thingsLeft } from "./left-behind.js";

/** Where the policies of brig let files be made. /dev/mqueue is the container's own, and its limits are those of F18. */
const SCRATCH = ["/tmp", "/run", "/home/brig", "/dev/shm", "/dev/mqueue"];

/** Those of brig's own modes. */
const LIMITS = { memoryBytes: 4096 * 2 ** 20, pids: 1024 };

/** At the top of every writable directory in the modes of brig that protect names. */
const PROTECTED = [".git", ".codex", ".agents", ".brig"];

let engine: Engine;
let targets: HostTargets;
let twin: WeakTwin;

beforeAll(async () => {
  engine = await testEngine();
  targets = await openHostTargets(engine.endpoint);
  twin = await openWeakTwin(engine, {
    ...{ image: "brig/base", targets, limits: LIMITS, labels: testLabels() },
    toolbox: await requireToolbox(engine),
  });
});
afterAll(async () => {
  await twin?.[Symbol.asyncDispose]();
  await targets?.[Symbol.asyncDispose]();
});

describe("in a container without any protection", () => {
  let asRoot: Outcomes;
  let asUser: Outcomes;
  let left: string[];

  beforeAll(async () => {
    [asRoot, asUser] = [await twin.attempt("0:0"), await twin.attempt("1234:4321")];
    await twin.exec(["sh", "-c", `cd "$0"\n${LEAVE_THINGS}`, twin.workspace]);
    left = await thingsLeft(twin.workspace, 0);
  });

  const tried = allAttempts.filter(({ control }) => typeof control !== "object");
  it.each(tried)("$attempt succeeds: the control of $id", (one) => {
    const outcome = (one.control === "user" ? asUser : asRoot)[one.attempt];
    expect(controlSucceeded(one, outcome), outcome).toBe(true);
  });

  it("a device, a setuid file and a file of somebody else are left: the control of B20", () => {
    expect(left).toEqual(["device", "file of another user", "setuid file"]);
  });
});

const cases = SANDBOX_MODES.flatMap((mode) => OWNING_USERS.map((user) => ({ mode, user })));

const policies = new Map(
  await Promise.all(SANDBOX_MODES.map(async (mode) => [mode, (await loadPolicy(mode)).policy] as const)),
);

const title = "under $mode for uid $user.uid [not on gVisor: gvisor.test.ts makes its attempts there]";
describe.skipIf(isGvisor).each(cases)(title, ({ mode, user }) => {
  let outcomes: Outcomes;
  let left: string[];

  beforeAll(async () => {
    ({ outcomes, left } = await probeSandbox(mode, user));
  });

  for (const probe of allAttempts) {
    const policy = policies.get(mode);
    // A setuid program gives root nothing.
    const isForUser = probe.control === "user" && user.uid === 0;
    if (policy !== undefined && permissionFor(probe, policy) === null && !isForUser)
      it(`${probe.id}: ${probe.title}`, () => {
        const outcome = outcomes[probe.attempt];
        expect(isRefused(probe, outcome), `${probe.attempt}: ${outcome}`).toBe(true);
      });
  }

  if (mode !== "danger-full-access")
    it("files can be made wherever the policy says so, so that B4 is no empty promise", () => {
      expect(outcomes["places-that-stopped-being-writable"]).toBe("nothing");
    });

  it("nothing is left in the workspace that would act for somebody else later (B20)", () => {
    // Root may make both there, but what ends the session takes the bits away.
    const allowed = mode === "danger-full-access" ? ["file of another user"] : [];
    expect(left).toEqual(allowed);
  });
});

async function probeSandbox(
  mode: SandboxMode,
  user: HostUser,
): Promise<{ outcomes: Outcomes; left: string[] }> {
  becomeHostUser(user);
  await using opened = await openTestSandbox({ mode });
  vi.restoreAllMocks();
  const { sandbox, workspace } = opened;
  await bringSetuidProgram(workspace);
  const writable = mode === "read-only" ? SCRATCH : [workspace, ...SCRATCH];
  const hasFullAccess = mode === "danger-full-access";
  const argv = targets.attempts({
    ...{ workspace, writable, mayLeave: !hasFullAccess, ...LIMITS },
    protectedNames: hasFullAccess ? [] : PROTECTED,
    setuidProgram: join(workspace, "setuid-program"),
  });
  const { stdout, stderr, exitCode } = await sandbox.exec(argv, { cwd: "/" });
  if (exitCode !== 0) throw new Error(`the probes failed: ${stderr}`);
  await sandbox.exec(["sh", "-c", LEAVE_THINGS], { cwd: workspace });
  await sandbox.close();
  return { outcomes: parseOutcomes(stdout), left: await thingsLeft(workspace, user.uid) };
}

/** Only root can give a file to root, and nobody else has such a file in a workspace. */
async function bringSetuidProgram(workspace: string): Promise<void> {
  if (OWNING_USERS.every(({ uid }) => uid !== 0)) return;
  const path = join(workspace, "setuid-program");
  await copyFile(twin.setuidProgram, path);
  await chown(path, 0, 0);
  await chmod(path, 0o4755);
}
