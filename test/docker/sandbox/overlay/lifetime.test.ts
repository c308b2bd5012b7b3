import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmdirSync, symlinkSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { treeLabel } from "../../../../src/sandbox/overlay/tree-volumes.js";
import { openedSandboxOf } from "../../../../src/sandbox/sandbox.js";
import { recordedNow } from "../../../../src/sandbox/sandbox-records.js";
import { sweep } from "../../../../src/sandbox/sweep.js";
import { testEngine } from "../../../support/engine.js";
import { isPodman } from "../../../support/runtime-differences.js";
import { sandboxTest as it } from "../../../support/sandbox.js";

const holder = fileURLToPath(new URL("../../../fixtures/hold-sandbox.ts", import.meta.url));

/** Kills a process that has a sandbox on the workspace. Returns the sandbox's container. */
async function killHolder(workspace: string, brigHome: string): Promise<string> {
  const child = spawn(process.execPath, ["--import", "tsx", holder, "600", workspace], {
    env: { ...process.env, BRIG_HOME: brigHome, BRIG_TEST_WORKSPACE_KIND: "overlay" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const [line] = (await once(child.stdout.setEncoding("utf8"), "data")) as [string];
  child.kill("SIGKILL");
  await ended;
  return line.trim();
}

async function volumesOf(engine: Engine, workspace: string): Promise<string[]> {
  const volumes = await engine.listVolumes([`brig.workspace=${workspace}`]);
  return volumes.map(({ name }) => name);
}

async function containersOf(engine: Engine, treeId: string): Promise<string[]> {
  return (await engine.listContainers([`brig.session=${treeId}`])).map(({ id }) => id);
}

it("of a killed process ends with the next start: keeper, volumes and record", async ({
  open,
  directory,
}) => {
  const [workspace, elsewhere, home] = ["workspace", "elsewhere", "home"].map((name) =>
    join(directory, name),
  );
  for (const path of [workspace, elsewhere, home]) await mkdir(path as string);
  const environment = { ...readEnvironment(), brigHome: home as string };
  const engine = await testEngine();
  const container = await killHolder(workspace as string, home as string);
  const volumes = await volumesOf(engine, workspace as string);
  expect(volumes).toHaveLength(3);
  const treeId = volumes[0]?.slice("brig-".length, "brig-".length + 36) ?? "";
  // Its containers are still running, so nothing of it may be removed.
  await (await open({ workspace: elsewhere, environment })).close();
  expect(await volumesOf(engine, workspace as string)).toHaveLength(3);
  const left = [container, ...(await containersOf(engine, treeId))];
  expect(left).toHaveLength(2);
  await Promise.all(left.map((id) => engine.removeContainer(id)));
  await (await open({ workspace: elsewhere, environment })).close();
  expect(await volumesOf(engine, workspace as string)).toEqual([]);
  expect(await readdir(join(home as string, "sandboxes"))).toEqual([]);
});

it("of a killed process is what brig gc removes, but not that of a living one", async ({
  open,
  directory,
}) => {
  const [dead, alive, home] = ["dead", "alive", "home"].map((name) => join(directory, name));
  for (const path of [dead, alive, home]) await mkdir(path as string);
  const environment = { ...readEnvironment(), brigHome: home as string };
  const engine = await testEngine();
  const living = await open({ workspace: alive, environment, workspaceKind: "overlay" });
  await killHolder(dead as string, home as string);
  const options = {
    now: new Date(),
    processes: await readHostProcesses(hostname()),
    records: recordedNow(home as string),
    sessionVolumeLabels: [treeLabel],
  };
  const own = async (dryRun: boolean) => {
    const { volumes } = await sweep(engine, { ...options, dryRun });
    const names = [
      ...(await volumesOf(engine, dead as string)),
      ...(await volumesOf(engine, alive as string)),
    ];
    return volumes
      .filter(({ id, removed }) => removed || names.includes(id))
      .map(({ verdict, removed }) => ({ verdict, removed }));
  };
  const stays = { verdict: "owner-alive", removed: false };
  const dry = await own(true);
  expect(dry.filter(({ verdict }) => verdict === "owner-gone")).toHaveLength(3);
  expect(dry.every(({ removed }) => !removed)).toBe(true);
  const swept = await own(false);
  expect(swept.filter(({ removed }) => removed)).toHaveLength(3);
  expect(swept.filter(({ removed }) => !removed)).toEqual([stays, stays, stays]);
  expect(await volumesOf(engine, dead as string)).toEqual([]);
  expect((await living.exec(["sh", "-c", "echo x > file && cat file"])).stdout).toBe("x\n");
});

it("leaves nothing when the keeper cannot be created", async ({ open, directory }) => {
  await expectCleanFailure(open, directory, (name) => name.includes("-keeper"));
});

it("leaves nothing when the sandbox itself cannot be created", async ({ open, directory }) => {
  await expectCleanFailure(open, directory, (name) => !name.includes("-keeper"));
});

async function expectCleanFailure(
  open: (options: object) => Promise<unknown>,
  directory: string,
  fails: (name: string) => boolean,
): Promise<void> {
  const [workspace, home] = [join(directory, "workspace"), join(directory, "home")];
  for (const path of [workspace, home]) await mkdir(path);
  const engine = await testEngine();
  const created: string[] = [];
  const failing: Engine = {
    ...engine,
    async createContainer(body, options = {}) {
      const id = await engine.createContainer(body, options);
      created.push(id);
      if (fails(options.name ?? "")) await engine.removeContainer(id);
      return id;
    },
  };
  const environment = { ...readEnvironment(), brigHome: home };
  const opening = open({ workspace, environment, workspaceKind: "overlay", engine: failing });
  await expect(opening).rejects.toMatchObject({ code: "engine.failed" });
  expect(created).toHaveLength(2);
  for (const id of created) expect(await engine.inspectContainer(id)).toBeNull();
  expect(await volumesOf(engine, workspace)).toEqual([]);
  expect(await readdir(join(home, "sandboxes"))).toEqual([]);
}

it("cannot be had of a workspace that the engine cannot mount, which leaves nothing", async ({
  open,
  directory,
}) => {
  const workspace = join(directory, "workspace");
  await mkdir(workspace);
  const opening = open({
    workspace,
    workspaceKind: "overlay",
    onProgress(stage) {
      if (stage === "starting the container") rmdirSync(workspace);
    },
  });
  const reason = isPodman ? "special device overlay does not exist" : "no such file or directory";
  await expect(opening).rejects.toMatchObject({
    code: "workspace.invalid",
    message: `the engine cannot mount a copy-on-write layer over ${JSON.stringify(workspace)}: ${reason}`,
    hint: expect.stringContaining("--workspace bind"),
  });
  expect(await volumesOf(await testEngine(), workspace)).toEqual([]);
});

it("outlives the killed container of its sandbox until that is closed", async ({ open, directory }) => {
  const sandbox = await open({ workspace: directory, workspaceKind: "overlay" });
  await sandbox.exec(["sh", "-c", "echo kept > file"]);
  const tree = openedSandboxOf(sandbox).tree;
  const keeper = await tree?.keeper();
  await sandbox.engine.removeContainer(sandbox.containerId);
  expect(keeper).toBeDefined();
  await sandbox.close();
  expect(await volumesOf(sandbox.engine, directory)).toEqual([]);
});

it("is one of two on the same workspace, and neither sees the other's", async ({ open, directory }) => {
  await writeFile(join(directory, "file"), "the host's\n");
  const options = { workspace: directory, workspaceKind: "overlay" } as const;
  const [one, other] = await Promise.all([open(options), open(options)]);
  await Promise.all([
    one.exec(["sh", "-c", "echo one > own; rm -f file"]),
    other.exec(["sh", "-c", "echo other > own"]),
  ]);
  expect((await one.exec(["sh", "-c", "cat own; ls"])).stdout).toBe("one\nown\n");
  expect((await other.exec(["sh", "-c", "cat own file"])).stdout).toBe("other\nthe host's\n");
  await one.close();
  expect((await other.exec(["cat", "own"])).stdout).toBe("other\n");
  expect(await readdir(directory)).toEqual(["file"]);
});

it("leaves nothing when its start is aborted", async ({ open, directory }) => {
  const stop = new AbortController();
  const opening = open({
    workspace: directory,
    workspaceKind: "overlay",
    signal: stop.signal,
    onProgress: (stage) => {
      if (stage === "checking the policy inside") stop.abort(new Error("enough"));
    },
  });
  await expect(opening).rejects.toThrow("enough");
  expect(await volumesOf(await testEngine(), directory)).toEqual([]);
});

it("does not start while a path leads to another directory than the one that was checked", async ({
  open,
  directory,
}) => {
  const [workspace, secrets] = [join(directory, "workspace"), join(directory, "secrets")];
  for (const path of [workspace, secrets]) await mkdir(path);
  await writeFile(join(secrets, "key"), "secret");
  const opening = open({
    workspace,
    workspaceKind: "overlay",
    onProgress: (stage) => {
      if (stage !== "starting the container") return;
      rmdirSync(workspace);
      symlinkSync(secrets, workspace);
    },
  });
  await expect(opening).rejects.toMatchObject({ code: "policy.not-enforced" });
  expect(await volumesOf(await testEngine(), workspace)).toEqual([]);
});
