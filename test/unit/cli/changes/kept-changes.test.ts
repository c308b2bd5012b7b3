import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { allKept, openKept } from "../../../../src/cli/changes/kept-changes.js";
import { noteRescue } from "../../../../src/sandbox/snapshots/rescued.js";
import { createSnapshot } from "../../../../src/sandbox/snapshots/snapshot-store.js";
import { testContext } from "../../../support/cli-context.js";

function newHome(): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), "brig-kept-")));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function keep(brigHome: string, id: string, createdAt: string): Promise<void> {
  await using writer = await createSnapshot(brigHome, { version: 1, id, workspace: "/start", createdAt });
  await writer.finish();
}

/** What becomes of opening the kept changes of `/start`; nobody gets as far as to an engine. */
async function opened(brigHome: string, id?: string) {
  const context = testContext({ variables: { BRIG_HOME: brigHome, DOCKER_HOST: "unix:///no/such/engine" } });
  const error: unknown = await openKept({ id }, context).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { error, ...context.written() };
}

describe("changes whose last state could not be stored", () => {
  it("are refused where there are earlier ones, and the error says where they are", async () => {
    const [home, elsewhere] = [newHome(), newHome()];
    await keep(home, "session-1", "2026-01-01T00:00:00.000Z");
    await keep(elsewhere, "session-1", "2026-01-01T00:00:01.000Z");
    await noteRescue(home, { id: "session-1", home: elsewhere });
    for (const id of [undefined, "session-1", "sess"])
      expect((await opened(home, id)).error).toMatchObject({
        code: "snapshot.unknown",
        message: expect.stringContaining(elsewhere),
        hint: expect.stringContaining(`BRIG_HOME=${elsewhere} brig apply --id session-`),
      });
    expect((await opened(elsewhere)).error).toMatchObject({ code: "engine.unreachable" });
    expect(await allKept(home)).toMatchObject([{ id: "session-1", changedAt: "2026-01-01T00:00:01.000Z" }]);
  });

  it("come before those of an earlier session", async () => {
    const [home, elsewhere] = [newHome(), newHome()];
    await keep(home, "earlier", "2026-01-01T00:00:00.000Z");
    await keep(elsewhere, "later", "2026-01-02T00:00:00.000Z");
    await noteRescue(home, { id: "later", home: elsewhere });
    expect((await opened(home)).error).toMatchObject({ message: expect.stringContaining(elsewhere) });
    expect((await opened(home, "earlier")).error).toMatchObject({ code: "engine.unreachable" });
    expect((await allKept(home)).map(({ id }) => id)).toEqual(["later", "earlier"]);
  });

  it.each(["they are gone", "nobody could store them"])(
    "leave earlier ones that must be asked for if %s",
    async (why) => {
      const [home, elsewhere] = [newHome(), newHome()];
      await keep(home, "session-1", "2026-01-01T00:00:00.000Z");
      await noteRescue(home, { id: "session-1", home: why === "they are gone" ? elsewhere : null });
      expect((await opened(home)).error).toMatchObject({
        code: "snapshot.unknown",
        hint: expect.stringContaining("brig apply --id session-"),
      });
      const { error, stderr } = await opened(home, "session-1");
      expect(error).toMatchObject({ code: "engine.unreachable" });
      expect(stderr).toContain("what is kept is an earlier one");
    },
  );

  it("are not taken from a directory that is another user's by now, or a link", async () => {
    const [home, elsewhere] = [newHome(), "/proc/self/cwd"];
    await keep(home, "session-1", "2026-01-01T00:00:00.000Z");
    await noteRescue(home, { id: "session-1", home: elsewhere });
    expect((await opened(home)).error).toMatchObject({ message: expect.stringContaining("is gone") });
  });
});
