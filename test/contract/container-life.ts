import { describe, expect, it } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../src/sandbox/labels.js";

/** A sandbox that was opened on this engine, and its container. */
export interface ContainerOfSandbox {
  engine: Engine;
  sessionId: string;
  id: string;
}

/**
 * What a sandbox relies on about its container. Every engine that sandboxes are opened on passes this. `logsRemovals`: its log of events says
 * that somebody has killed the container, also when it is removed.
 */
export function describeContainerLife(
  name: string,
  open: () => Promise<ContainerOfSandbox>,
  { logsRemovals = true } = {},
): void {
  describe(`the container of a sandbox on ${name}`, () => {
    it("runs as it was asked for, under its id and its name", async () => {
      const { engine, id, sessionId } = await open();
      const state = await engine.inspectContainer(id);
      expect(state).toMatchObject({ id, running: true, paused: false, oomKilled: false, error: "" });
      expect(await engine.inspectContainer(`brig-${sessionId}`)).toEqual(state);
      const created = await engine.inspectCreated(id);
      expect(created.entrypoint[0]).toMatch(/^\/\.brig\//);
      expect(created.labels[LABELS.session]).toBe(sessionId);
      expect(created.imageId).toBe(state?.imageId);
      expect(created.healthcheck).toEqual(["NONE"]);
      await expect(engine.unpauseContainer(id)).rejects.toThrow("is not paused");
      await engine.pauseContainer(id);
      expect(await engine.inspectContainer(id)).toMatchObject({ running: true, paused: true });
      await engine.unpauseContainer(id);
      expect(await engine.inspectContainer(id)).toMatchObject({ running: true, paused: false });
      const actions = (await engine.containerEvents(id)).map(({ action }) => action);
      expect(actions).toContain("start");
      expect(actions).not.toContain("die");
    });

    it("is gone once it is removed, however often, and takes nothing any more", async () => {
      const { engine, id, sessionId } = await open();
      await engine.removeContainer(id);
      await engine.waitRemoved(id);
      await engine.removeContainer(id);
      expect(await engine.inspectContainer(id)).toBeNull();
      expect(await engine.inspectContainer(`brig-${sessionId}`)).toBeNull();
      const events = await engine.containerEvents(id);
      expect(events.some(({ action }) => action === "kill")).toBe(logsRemovals);
      expect(events.findLast(({ action }) => action === "die")).toMatchObject({ exitCode: 137 });
      await expect(engine.inspectCreated(id)).rejects.toThrow();
      await expect(engine.attachContainer(id)).rejects.toThrow();
      await expect(engine.startContainer(id)).rejects.toThrow();
      await expect(engine.openExec(id, ["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
    });
  });
}
