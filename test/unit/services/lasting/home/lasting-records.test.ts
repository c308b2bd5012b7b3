import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  findLasting,
  type LastingRecord,
  readLasting,
  removeLasting,
  requireName,
  writeLasting,
  writeLog,
} from "../../../../../src/services/lasting/home/lasting-records.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

function record(name: string, id: string, createdAt = "2026-01-01T00:00:00.000Z"): LastingRecord {
  const about = { mode: "workspace-write", network: "none", image: "brig/base", workspace: null, createdAt };
  const owner = { pid: 1, startedAt: null, bootId: null, host: "here" };
  return { name, id: id.padEnd(36, "0"), state: "running", reason: null, owner, about };
}

it("records are kept until they are removed, the oldest first, for their user alone", async () => {
  const home = await temporaryFolder();
  expect(readLasting(home)).toEqual([]);
  const [young, old] = [record("a", "1", "2026-02"), record("b", "2", "2026-01")];
  for (const one of [young, old]) writeLasting(home, one);
  expect(readLasting(home)).toEqual([old, young]);
  expect((await stat(join(home, "lasting", "a.json"))).mode & 0o777).toBe(0o600);
  writeLog(home, "a", [Buffer.from("output")]);
  writeLasting(home, { ...young, state: "stopped", reason: "idle" });
  expect(readLasting(home)[1]).toMatchObject({ state: "stopped", reason: "idle" });
  for (const name of ["a", "b", "b"]) removeLasting(home, name);
  expect(await readdir(join(home, "lasting"))).toEqual([]);
});

it("what is no record of that name is left out", async () => {
  const home = await temporaryFolder();
  writeLasting(home, record("real", "1"));
  for (const [file, text] of [
    ["other.json", JSON.stringify(record("real", "1"))],
    ["broken.json", "{"],
    ["Upper.json", JSON.stringify(record("Upper", "2"))],
    [".hidden.json", JSON.stringify(record("x", "2"))],
  ] as const)
    await writeFile(join(home, "lasting", file), text);
  expect(readLasting(home).map(({ name }) => name)).toEqual(["real"]);
});

it("a name comes before an id, an id before the beginning of one, and a beginning must be the only one", () => {
  const known = [record("abc", "11"), record("d", "abcd"), record("e", "abce"), record("f", "ff")];
  expect(findLasting(known, "abc").name).toBe("abc");
  expect(findLasting(known, "abcd").name).toBe("d");
  expect(findLasting(known, "f".padEnd(2, "f")).name).toBe("f");
  expect(() => findLasting(known, "ab")).toThrow(expect.objectContaining({ code: "usage.invalid" }));
  for (const wanted of ["", "nope", "../abc"])
    expect(() => findLasting(known, wanted)).toThrow(expect.objectContaining({ code: "sandbox.unknown" }));
});

it("names are plain words, so that none is a path or an option", () => {
  for (const name of ["a", "0", "a.b-c_d", "x".repeat(100)]) expect(() => requireName(name)).not.toThrow();
  for (const name of ["", ".", "..", "a/b", "-a", "A", "a b", "a\n", "x".repeat(101), "é"])
    expect(() => requireName(name), name).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});
