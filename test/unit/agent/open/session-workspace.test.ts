import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { withSessionWorkspace, workspaceStart } from "../../../../src/agent/open/session-workspace.js";
import type { RecordedState } from "../../../../src/agent/session/read/session-reader.js";
import { sessionHost } from "../../../../src/command/flags/agent-settings.js";
import type { WorkspaceKind } from "../../../../src/sandbox/sandbox-options.js";
import { createSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { testContext } from "../../../support/cli-context.js";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-start-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

async function keep(id: string, workspace = "/work"): Promise<void> {
  await using writer = await createSnapshot(home, {
    version: 1,
    id,
    workspace,
    createdAt: new Date(0).toISOString(),
  });
  await writer.finish();
}

const state = (snapshot: string, isCertain = true, point: number | null = null): RecordedState => ({
  snapshot,
  point,
  isCertain,
});

async function start(states: readonly RecordedState[], { isOverlay = true, workspace = "/work" } = {}) {
  const context = testContext({ variables: { BRIG_HOME: home } });
  const { environment, warn } = sessionHost(context);
  const found = await workspaceStart({ states }, { workspace, environment }, { isOverlay, warn });
  return { ...found, said: context.written().stderr };
}

describe("the kind of a resumed session's workspace", () => {
  async function kindOf(workspaceKind: WorkspaceKind | undefined, recorded = true) {
    const context = testContext();
    const settings = { sandbox: { workspace: "/work", workspaceKind } };
    const states = recorded ? { states: [] } : null;
    const { sandbox } = await withSessionWorkspace(settings, states, sessionHost(context));
    return [sandbox.workspaceKind, context.written().stderr];
  }

  it("is the one it had, which is said", async () => {
    expect(await kindOf(undefined)).toEqual(["overlay", expect.stringContaining("copy-on-write")]);
  });

  it.each(["bind", "none"] as const)("is %s if the flag says so, which is said", async (kind) => {
    expect(await kindOf(kind)).toEqual([kind, expect.stringContaining(`--workspace ${kind}`)]);
  });

  it("is not mentioned where nothing differs from what was asked for", async () => {
    expect(await kindOf("overlay")).toEqual(["overlay", ""]);
    expect(await kindOf(undefined, false)).toEqual([undefined, ""]);
    expect(await kindOf("bind", false)).toEqual(["bind", ""]);
  });
});

describe("what the workspace of a resumed session begins with", () => {
  it("is its last state", async () => {
    await keep("t1");
    expect(await start([state("t1")])).toEqual({
      from: { snapshot: "t1", point: undefined },
      loss: null,
      said: "",
    });
  });

  it("is what the run before began with, if the last one has changed nothing", async () => {
    await keep("t1");
    expect(await start([state("t3", false), state("t2", false), state("t1")])).toMatchObject({
      from: { snapshot: "t1" },
      loss: null,
      said: "",
    });
    expect(await start([state("t3", false)])).toEqual({ from: null, loss: null, said: "" });
  });

  it("is the host's files if the state is gone, which the user and the model are told", async () => {
    await keep("t1");
    const { from, loss, said } = await start([state("t2"), state("t1")]);
    expect({ from, said }).toEqual({ from: null, said: expect.stringContaining("t2, is not kept any more") });
    expect(loss).toContain("was not kept");
  });

  it("is the host's files if the state lacks the restore point", async () => {
    await keep("t1");
    expect(await start([state("t1", true, 7)])).toMatchObject({ from: null, loss: expect.any(String) });
  });

  it("is never the state of another directory", async () => {
    await keep("t1", "/elsewhere\u001b[2J");
    const { from, loss, said } = await start([state("t1")]);
    expect({ from, loss }).toEqual({ from: null, loss: expect.stringContaining("another directory") });
    expect(said).toContain("/elsewhere");
    expect(said).not.toContain("\u001b");
  });

  it("is the user's own files without a copy-on-write workspace, which the model is told if it matters", async () => {
    await keep("t1");
    expect(await start([state("t1")], { isOverlay: false })).toMatchObject({
      from: null,
      loss: expect.stringContaining("the user's own files"),
    });
    expect(await start([state("t2", false)], { isOverlay: false })).toMatchObject({ from: null, loss: null });
  });

  it("cannot be a state that is damaged", async () => {
    await keep("t1");
    writeFileSync(join(home, "snapshots", "t1", "manifest.jsonl"), "{}\n");
    await expect(start([state("t1")])).rejects.toMatchObject({ code: "snapshot.invalid" });
  });

  it.each(["../../etc", "", ".", "a/b", "x".repeat(300)])(
    "cannot be outside of the kept states: %j",
    async (id) => {
      expect(await start([state(id)])).toMatchObject({ from: null, loss: expect.any(String) });
    },
  );
});
