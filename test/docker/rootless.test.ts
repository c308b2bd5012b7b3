import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openHostTargets, openWeakTwin } from "../../src/sandbox/attack/weak-twin.js";
import { diagnose } from "../../src/sandbox/docker/diagnosis/diagnose.js";
import { isRootless } from "../../src/sandbox/docker/rootless.js";
import { requireToolbox } from "../../src/sandbox/images/require-toolbox.js";
import { testEngine } from "../support/engine.js";
import { openTestSandbox, temporaryDirectory } from "../support/sandbox.js";
import { testLabels } from "../support/test-run.js";

/** These tests need a rootless engine as DOCKER_HOST, and to run as its user, as `.ci/rootless` does. */
const engine = await testEngine();
const rootless = isRootless(await engine.info());
const { limits } = await engine.health();
const canLimit = Object.values(limits).every(Boolean);
const canLimitNothing = !Object.values(limits).some(Boolean);

async function diagnosed(): Promise<Record<string, string>> {
  return Object.fromEntries((await diagnose(engine)).map(({ id, status }) => [id, status]));
}

describe.runIf(rootless && canLimitNothing)(
  "a rootless engine that cannot limit anything [needs a rootless engine on version 1 of control groups]",
  () => {
    it.each(["read-only", "workspace-write", "danger-full-access"] as const)(
      "runs nothing in %s, and the error names each limit that is missing",
      async (mode) => {
        await using workspace = await temporaryDirectory();
        const opening = openTestSandbox({ mode, workspace: workspace.path });
        await expect(opening).rejects.toMatchObject({ code: "policy.not-enforced" });
        const { message } = (await opening.catch((error: Error) => error)) as Error;
        for (const name of ["memory bytes", "pids", "cpus", "swap bytes"])
          expect(message).toMatch(new RegExp(`promised ${name} [0-9]+, the kernel says ${name} `));
        expect(await readdir(workspace.path)).toEqual([]);
      },
    );

    it("fails the diagnosis, and not only warns", async () => {
      expect(await diagnosed()).toMatchObject({ cgroups: "fail", limits: "fail" });
    });
  },
);

describe.runIf(rootless && canLimit)(
  "a rootless engine that can limit its containers [needs a rootless engine on version 2 of control groups]",
  () => {
    it.each(["read-only", "workspace-write", "danger-full-access"] as const)(
      "keeps all that %s promises",
      async (mode) => {
        await using opened = await openTestSandbox({ mode });
        const { proof } = opened.sandbox;
        expect(proof.differences).toEqual([]);
        expect(proof.notProvable).toEqual([]);
        expect(proof.summary.pids).toBe("1024");
      },
    );

    it("runs commands as root of its own users, who is the user outside", async () => {
      await using opened = await openTestSandbox();
      const { sandbox, workspace } = opened;
      await writeFile(join(workspace, "given"), "from outside", { mode: 0o600 });
      const { stdout } = await sandbox.exec(["sh", "-c", "id -u; cat given; echo inside > made"]);
      expect(stdout).toBe("0\nfrom outside");
      const { uid, gid } = await stat(join(workspace, "made"));
      expect([uid, gid]).toEqual([process.getuid?.(), process.getgid?.()]);
    });

    it("cannot have a copy-on-write workspace, and the error says what to use", async () => {
      const opening = openTestSandbox({ workspaceKind: "overlay" });
      await expect(opening).rejects.toMatchObject({
        code: "policy.not-enforced",
        hint: expect.stringContaining("--workspace bind"),
      });
    });

    it("passes the diagnosis", async () => {
      expect(await diagnosed()).toMatchObject({ cgroups: "ok", limits: "ok", "user-namespaces": "ok" });
    });
  },
);

describe.runIf(rootless)("the control of attempts on a rootless engine [needs a rootless engine]", () => {
  it("starts without the host's processes, which it may not have", async () => {
    await using targets = await openHostTargets(engine.endpoint);
    await using twin = await openWeakTwin(engine, {
      ...{ image: "brig/base", targets, labels: testLabels() },
      limits: { memoryBytes: 2 ** 30, pids: 64 },
      toolbox: await requireToolbox(engine),
    });
    const outcomes = await twin.attempt("0:0");
    expect(outcomes).toMatchObject({ "engine-socket": "done", "first-process-memory": "done" });
    expect(outcomes["host-processes"]).toBe("nothing");
  });
});
