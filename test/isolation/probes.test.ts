import { chmod, chown, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Engine } from "../../src/docker/engine-types.js";
import { SANDBOX_MODES, type SandboxMode } from "../../src/policy/modes.js";
import { testEngine } from "../support/engine.js";
import { becomeHostUser, type HostUser, OWNING_USERS } from "../support/host-users.js";
import { isGvisor } from "../support/runtime-differences.js";
import { openTestSandbox } from "../support/sandbox.js";
import { type HostTargets, hostTargets } from "./host-targets.js";
import { LEAVE_THINGS, thingsLeft } from "./left-behind.js";
import { isRefused, probes } from "./probes.js";
import { type WeakTwin, weakTwin } from "./weak-twin.js";

/** Where the policies of brig let files be made. /dev/mqueue is the container's own, and its limits are those of F18. */
const SCRATCH = ["/tmp", "/run", "/home/brig", "/dev/shm", "/dev/mqueue"];

type Outcomes = Record<string, string>;

let engine: Engine;
let targets: HostTargets;
let twin: WeakTwin;

beforeAll(async () => {
  engine = await testEngine();
  targets = await hostTargets(engine);
  twin = await weakTwin(engine, targets);
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
    [asRoot, asUser] = [await twin.run("0:0"), await twin.run("1234:4321")];
    left = await twin.leaveThings();
  });

  const tried = probes.filter(({ control }) => typeof control !== "object");
  it.each(tried)("$attempt succeeds: the control of $id", ({ attempt, control, controlAnswer }) => {
    const outcome = (control === "user" ? asUser : asRoot)[attempt];
    if (controlAnswer !== undefined) expect(outcome).toBe(controlAnswer);
    else expect(outcome).toMatch(/^(?:done$|found )/);
  });

  it("a device, a setuid file and a file of somebody else are left: the control of B20", () => {
    expect(left).toEqual(["device", "file of another user", "setuid file"]);
  });
});

const cases = SANDBOX_MODES.flatMap((mode) => OWNING_USERS.map((user) => ({ mode, user })));

describe.skipIf(isGvisor).each(cases)("under $mode for uid $user.uid", ({ mode, user }) => {
  let outcomes: Outcomes;
  let left: string[];

  beforeAll(async () => {
    ({ outcomes, left } = await probeSandbox(mode, user));
  });

  for (const probe of probes) {
    const refused = mode !== "danger-full-access" || probe.fullAccess !== "allowed";
    if (refused)
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
  const argv = targets.probes({ workspace, writable, mayLeave: mode !== "danger-full-access" });
  const { stdout, stderr, exitCode } = await sandbox.exec(argv, { cwd: "/" });
  if (exitCode !== 0) throw new Error(`the probes failed: ${stderr}`);
  await sandbox.exec(["sh", "-c", LEAVE_THINGS], { cwd: workspace });
  await sandbox.close();
  return { outcomes: JSON.parse(stdout) as Outcomes, left: await thingsLeft(workspace, user.uid) };
}

/** Only root can give a file to root, and nobody else has such a file in a workspace. */
async function bringSetuidProgram(workspace: string): Promise<void> {
  if (OWNING_USERS.every(({ uid }) => uid !== 0)) return;
  const path = join(workspace, "setuid-id");
  await copyFile(join(twin.workspace, "setuid-id"), path);
  await chown(path, 0, 0);
  await chmod(path, 0o4755);
}
