import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import { undoKilledApplies } from "../../../../src/sandbox/changes/sandbox-changes.js";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { openSandbox } from "../../../../src/sandbox/open-sandbox.js";
import { treeLabel } from "../../../../src/sandbox/overlay/tree-volumes.js";
import { reclaimPlaceholders, recordedNow } from "../../../../src/sandbox/sandbox-records.js";
import { resolveSettings } from "../../../../src/sandbox/settings/resolve-settings.js";
import { removeUnfinishedSnapshots } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { sweep } from "../../../../src/sandbox/sweep.js";
import { testEngine } from "../../../support/engine.js";
import { treeDigest } from "../../../support/host-tree.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

const program = fileURLToPath(new URL("../../../fixtures/change-and-apply.ts", import.meta.url));
const kills = Number(process.env.BRIG_TEST_KILLS ?? 3);
const FILES = 200;

function makeWorkspace(workspace: string) {
  for (let n = 0; n < FILES; n++) {
    const directory = join(workspace, `d${n % 10}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `f${n}`), "host\n");
  }
  writeFileSync(join(workspace, "gone"), "host\n");
}

/**
 * Runs the action to its end, or kills brig `killAfterMs` after the action has begun. Returns how long that
 * took.
 */
async function run(action: string, { workspace, home, killAfterMs }: Run): Promise<number> {
  const child = spawn(process.execPath, ["--import", "tsx", program, workspace, action], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, BRIG_HOME: home },
  });
  const closed = once(child, "close");
  const lines = createInterface(child.stdout);
  await once(lines, "line");
  const startedAt = performance.now();
  const done = once(lines, "line");
  child.stdin.write("go\n");
  if (killAfterMs === null) await done;
  else {
    await pause(killAfterMs);
    child.kill("SIGKILL");
    done.catch(() => undefined);
  }
  const tookMs = performance.now() - startedAt;
  await closed;
  return tookMs;
}

interface Run {
  workspace: string;
  home: string;
  killAfterMs: number | null;
}

/**
 * Does what `brig gc` does, except for removing the toolboxes of other builds: other tests may be using them.
 */
async function collectGarbage(engine: Engine, home: string): Promise<void> {
  const processes = await readHostProcesses(hostname());
  const records = recordedNow(home);
  await sweep(engine, { now: new Date(), processes, records, sessionVolumeLabels: [treeLabel] });
  await reclaimPlaceholders(engine, { brigHome: home, processes });
  const environment = readEnvironment({ ...process.env, BRIG_HOME: home });
  await undoKilledApplies(home, async (workspace) => {
    const settings = resolveSettings({ workspace, workspaceKind: "overlay", environment });
    return await openSandbox(settings, { engine });
  });
  await removeUnfinishedSnapshots(home, processes);
}

describe.each(["apply", "fork"])("brig killed in the middle of %s", (action) => {
  it("leaves the host's files as before or as after, and brig gc removes the rest", async () => {
    const engine = await testEngine();
    let tookMs = 0;
    const outcomes = new Set<string>();
    for (let attempt = 0; attempt <= kills; attempt++) {
      await using folder = await temporaryDirectory();
      const [workspace, home] = [join(folder.path, "work"), join(folder.path, "home")];
      mkdirSync(workspace);
      makeWorkspace(workspace);
      const before = await treeDigest(workspace);
      // The first attempt is not killed, and shows how long the action takes.
      const killAfterMs = attempt === 0 ? null : Math.random() * tookMs;
      const ranMs = await run(action, { workspace, home, killAfterMs });
      if (attempt === 0) tookMs = ranMs;
      await collectGarbage(engine, home);
      const after = await treeDigest(workspace);
      const names = readdirSync(workspace).toSorted();
      outcomes.add(after === before ? "before" : "after");
      const isAfter = names.includes("new") && !names.includes("gone");
      expect({ isBefore: after === before, isAfter }).toEqual({ isBefore: !isAfter, isAfter });
      if (isAfter) expect(after).toBe(await changedDigest(folder.path));
      expect(names.filter((name) => name.startsWith(".brig"))).toEqual([]);
      // The engine may only now have created a container that the killed process had asked for.
      const volumesLeft = async () => {
        await collectGarbage(engine, home);
        return await engine.listVolumes([`brig.workspace=${workspace}`]);
      };
      await expect.poll(volumesLeft).toEqual([]);
      const left = readdirSync(home, { recursive: true }).map(String);
      expect(left.filter((name) => /^(?:snapshots|applies|sandboxes)\/./.test(name))).toEqual([]);
    }
    expect(outcomes).toContain(action === "apply" ? "after" : "before");
  });
});

/** The digest of the workspace with all changes made. */
async function changedDigest(folder: string): Promise<string> {
  const workspace = join(folder, "work");
  const expected = join(folder, "expected");
  mkdirSync(expected);
  for (let n = 0; n < FILES; n++) {
    const directory = join(expected, `d${n % 10}`);
    mkdirSync(directory, { recursive: true });
    writeFileSync(join(directory, `f${n}`), "agent\n");
  }
  mkdirSync(join(expected, "new"));
  writeFileSync(join(expected, "new/n"), "n\n");
  expect(readdirSync(workspace, { recursive: true }).length).toBe(
    readdirSync(expected, { recursive: true }).length,
  );
  return await treeDigest(expected);
}
