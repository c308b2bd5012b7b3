import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { attack } from "../../../src/sandbox/attack/attack.js";
import type { ContainerBody, Engine } from "../../../src/sandbox/docker/engine-types.js";
import type { SandboxPlan } from "../../../src/sandbox/plan/plan.js";
import { planSandbox } from "../../../src/sandbox/plan/plan-sandbox.js";
import { loadPolicy } from "../../../src/sandbox/policy/load-policy.js";
import { resolveSettings } from "../../../src/sandbox/settings/resolve-settings.js";
import { testEngine } from "../../support/engine.js";
import { becomeHostUser, HOST_USERS } from "../../support/host-users.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { startRawContainer } from "../../support/raw-container.js";
import { isGvisor, testRuntime } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const LIMIT = "/sys/fs/cgroup/pids/pids.max";
const cgroupFiles = [
  LIMIT,
  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
  "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
];

/** Writes a number to each file; "ok", or what the shell says instead. */
function writes(files: readonly string[]): string[] {
  const script = 'for file; do if echo 7 2>/dev/null > "$file"; then echo ok; else echo refused; fi; done';
  return ["sh", "-c", script, "sh", ...files];
}

/** The limits that the host's kernel has for the process of a container, by the file's name. */
async function limitsOutside(sandbox: Pick<BreakableSandbox, "engine">, id: string): Promise<string[]> {
  const pid = (await sandbox.engine.inspectContainer(id))?.pid;
  const lines = (await readFile(`/proc/${pid}/cgroup`, "utf8")).split("\n");
  const limits: string[] = [];
  for (const [controller, name] of [
    ["pids", "pids.max"],
    ["memory", "memory.limit_in_bytes"],
  ] as const) {
    const path = lines.find((line) => line.split(":")[1] === controller)?.split(":")[2] ?? "";
    const text = await readFile(`/sys/fs/cgroup/${controller}${path}/${name}`, "utf8").catch(() => "none");
    limits.push(`${name} ${text.trim()}`);
  }
  return limits;
}

/** Of a sandbox without a workspace, as root without capabilities. */
async function rootPlan(engine: Engine): Promise<SandboxPlan> {
  const policy = await loadPolicy("read-only");
  return await planSandbox({
    policy: { ...policy, policy: { ...policy.policy, user: "root" } },
    workspace: null,
    image: "brig/base",
    runtime: testRuntime,
    addDirs: [],
    writableRoots: [],
    env: {},
    hostUser: { uid: 0, gid: 0 },
    leaseSeconds: 60,
    keep: false,
    sessionId: "unmasked",
    labels: {},
    engine: await engine.info(),
    endpoint: engine.endpoint,
    host: { homeDirectory: null },
  });
}

const unmasked = (body: ContainerBody) => void delete body.HostConfig.Tmpfs["/sys/fs/cgroup"];

describe.skipIf(!isGvisor)("on gVisor [needs it as BRIG_TEST_RUNTIME]", () => {
  sandboxTest("no command reaches the cgroup files of gVisor's own", async ({ sandbox }) => {
    const { stdout } = await sandbox.exec(writes(cgroupFiles));
    expect(stdout).toBe("refused\nrefused\nrefused\n");
    const { stdout: mounts } = await sandbox.exec(["cat", "/proc/self/mountinfo"]);
    const over = mounts.split("\n").filter((line) => line.split(" ")[4]?.startsWith("/sys/fs/cgroup"));
    expect(over.map((line) => line.replace(/^.* - /, "- "))).toEqual([
      expect.stringMatching(/^- tmpfs .*\bro\b/),
    ]);
  });

  sandboxTest(
    "without the mask root writes them, nobody else does, and the host's limits stay",
    async ({ sandbox }) => {
      const plan = await rootPlan(sandbox.engine);
      await using container = await startRawContainer(sandbox.engine, plan, unmasked);
      const before = await limitsOutside(sandbox, container.id);
      const { cgroupVersion } = await sandbox.engine.info();
      if (cgroupVersion === "1") expect(before[0]).toMatch(/^pids\.max (?:max|[0-9]+)$/);
      expect((await container.exec(writes(cgroupFiles), "4242:4242")).output).toBe(
        "refused\nrefused\nrefused\n",
      );
      expect((await container.exec(writes(cgroupFiles), "0:0")).output).toBe("ok\nok\nok\n");
      expect((await container.exec(["cat", LIMIT], "0:0")).output).toBe("7\n");
      expect(await limitsOutside(sandbox, container.id)).toEqual(before);
    },
  );

  it.each(HOST_USERS)(
    "every attempt of brig doctor --attack holds or is known, for uid $uid",
    async (user) => {
      becomeHostUser(user);
      const settings = await Promise.all(
        (["read-only", "workspace-write"] as const).map((mode) =>
          resolveSettings({ workspace: null, environment: readEnvironment(), mode, runtime: testRuntime }),
        ),
      );
      // In .ci/gvisor the engine has a network of its own, where a container without protection proves less.
      const attacked = await attack(await testEngine(), {
        ...{ settings, hasControl: false, signal: new AbortController().signal, onProgress: () => undefined },
      });
      expect(attacked.map(({ kernel }) => kernel)).toEqual(["gvisor", "gvisor"]);
      for (const { policy, judgements } of attacked) {
        const faults = judgements.filter(({ verdict }) => verdict === "failed" || verdict === "unjudged");
        expect(faults, policy).toEqual([]);
        expect(judgements.filter(({ verdict }) => verdict === "held").length).toBeGreaterThan(30);
      }
    },
  );

  sandboxTest("is found out by its kernel where the engine calls it something else", async ({ open }) => {
    const engine = await testEngine();
    const info = await engine.info();
    const runtimes = info.runtimes.map((one) =>
      one.name === testRuntime ? { ...one, program: "runc" } : one,
    );
    const sandbox = await open({ engine: { ...engine, info: async () => ({ ...info, runtimes }) } });
    expect(sandbox.proof.summary.kernel).toBe("gvisor");
    expect((await sandbox.exec(["uname", "-v"])).stdout).toContain("2016");
  });
});
