import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { pause } from "../../../../src/lib/time/pause.js";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../../../src/sandbox/labels.js";
import {
  createTreeVolumes,
  removeTreeVolumes,
  treeLabel,
  treeVolumes,
} from "../../../../src/sandbox/overlay/tree-volumes.js";
import { openedSandboxOf, Sandbox } from "../../../../src/sandbox/sandbox.js";
import { testEngine } from "../../../support/engine.js";
import { sandboxTest } from "../../../support/sandbox.js";
import { testLabels } from "../../../support/test-run.js";

it("a tree whose volumes are not all created leaves none, even if the engine is slow", async () => {
  const engine = await testEngine();
  const id = randomUUID();
  const names = treeVolumes(id);
  const refused = new BrigError("no more volumes", { code: "engine.failed" });
  const slow: Engine = {
    ...engine,
    async createVolume(name, labels, options) {
      if (name === names.merged) throw refused;
      await pause(200);
      return await engine.createVolume(name, labels, options);
    },
  };
  const directory = { lower: "/tmp", upper: "/nowhere/upper", work: "/nowhere/work", path: "/tmp" };
  const layers = { id, ...directory, identity: { dev: "0", ino: "0" }, witnesses: [] };
  const labels = { ...testLabels(), [LABELS.session]: id };
  await expect(createTreeVolumes(slow, layers, labels)).rejects.toBe(refused);
  await removeTreeVolumes(engine, id);
  await pause(500);
  expect(await engine.listVolumes([treeLabel, `${LABELS.session}=${id}`])).toEqual([]);
});

sandboxTest(
  "a tree that is closed while changes begin to be applied leaves nothing",
  async ({ directory }) => {
    const sandbox = await Sandbox.create({ workspace: directory, workspaceKind: "overlay" });
    const { tree, engine } = openedSandboxOf(sandbox);
    const opening = tree?.openApplier();
    opening?.catch(() => undefined);
    await sandbox.close();
    await opening?.catch(() => undefined);
    const ofTree = `${LABELS.session}=${tree?.id}`;
    expect(await engine.listContainers([ofTree])).toEqual([]);
    expect(await engine.listVolumes([ofTree])).toEqual([]);
  },
);
