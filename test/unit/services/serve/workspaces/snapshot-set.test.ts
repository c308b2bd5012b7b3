import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { SnapshotSet } from "../../../../../src/services/serve/workspaces/snapshot-set.js";

let brigHome: string;
let snapshots: SnapshotSet;

beforeEach(async () => {
  brigHome = await mkdtemp(join(tmpdir(), "brig-snapshots-"));
  snapshots = new SnapshotSet(brigHome);
});
afterEach(async () => await rm(brigHome, { recursive: true }));

const stored = async (id: string) => void (await mkdir(join(brigHome, "snapshots", id), { recursive: true }));
const record = (id: string, client = "one") => ({ id, client, name: `of ${id}`, workingDirectory: "/work" });

async function add(id: string, client?: string): Promise<void> {
  await stored(id);
  await snapshots.add(record(id, client));
}

it("each client has its own, and the next service has them as well", async () => {
  for (const id of ["b", "a"]) await add(id);
  await add("c", "other");
  const next = new SnapshotSet(brigHome);
  expect((await next.of("one")).map(({ id }) => id)).toEqual(["a", "b"]);
  expect(await next.get("other", "c")).toEqual(record("c", "other"));
  for (const id of ["c", "nothing", "..", "../snapshots/a", "none"])
    await expect(next.get("one", id), id).rejects.toMatchObject({ code: "snapshot.unknown" });
});

it("only the client itself removes one, with what is stored", async () => {
  await add("a");
  await expect(snapshots.remove("other", "a")).rejects.toMatchObject({ code: "snapshot.unknown" });
  await snapshots.remove("one", "a");
  await expect(snapshots.remove("one", "a")).rejects.toMatchObject({ code: "snapshot.unknown" });
  expect(await readdir(join(brigHome, "snapshots"))).toEqual([]);
  expect(await readdir(join(brigHome, "serve-snapshots"))).toEqual([]);
});

it("one that was removed from the store, or whose file is broken, is unknown", async () => {
  for (const id of ["a", "b", "c"]) await add(id);
  await rm(join(brigHome, "snapshots", "a"), { recursive: true });
  await writeFile(join(brigHome, "serve-snapshots", "b.json"), "{");
  expect((await snapshots.of("one")).map(({ id }) => id)).toEqual(["c"]);
  for (const id of ["a", "b"])
    await expect(snapshots.get("one", id)).rejects.toMatchObject({ code: "snapshot.unknown" });
});

it("one whose owner cannot be noted is not kept", async () => {
  await stored("a");
  await writeFile(join(brigHome, "serve-snapshots"), "");
  await expect(snapshots.add(record("a"))).rejects.toThrow();
  expect(await readdir(join(brigHome, "snapshots"))).toEqual([]);
});

it("a sandbox has the workspace of its snapshot where it was, unless the client says otherwise", async () => {
  await add("a");
  expect(await snapshots.resolve("one", { snapshot: "a" })).toEqual({
    snapshot: "a",
    workingDirectory: "/work",
  });
  const elsewhere = { snapshot: "a", workingDirectory: "/other" };
  expect(await snapshots.resolve("one", elsewhere)).toEqual(elsewhere);
  expect(await snapshots.resolve("one", { image: "x" })).toEqual({ image: "x" });
  await expect(snapshots.resolve("other", { snapshot: "a" })).rejects.toMatchObject({
    code: "snapshot.unknown",
  });
});
