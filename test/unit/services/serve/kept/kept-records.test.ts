import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  type KeptRecord,
  keptDirectories,
  newKeptDirectory,
  readKept,
  removeKept,
  writeKept,
} from "../../../../../src/services/serve/kept/kept-records.js";
import { temporaryFolder } from "../../../../support/batch-runs.js";

const record: KeptRecord = {
  ...{ isPaused: true, pausesAtExpiry: false },
  ...{ format: 1, client: "one", key: { key: "k", bodyHash: "h" }, env: { A: "\0\n" }, maxLifeMs: 1000 },
  sandbox: {
    ...{ id: "a", state: "open", image: "i", mode: "workspace-write", network: "none", task: null },
    ...{ instruction: null, workingDirectory: "/", labels: { team: "x" }, idleMs: 5 },
    ...{ createdAt: "2026-01-01T00:00:00.000Z", expiresAt: "2026-01-01T01:00:00.000Z" },
  },
  opening: {
    ...{ image: "i", mode: "workspace-write", network: "none", runtime: null, limits: { cpus: 1 }, env: {} },
    ...{ user: { user: "1:1", home: "/home" }, workspace: { directory: "/d", path: "/workspace" } },
  },
};

it("are read as they were written, by their user only, and are gone when they are removed", async () => {
  const home = await temporaryFolder();
  const directory = newKeptDirectory(home);
  writeKept(directory, record);
  writeKept(directory, { ...record, client: "two" });
  expect(readKept(directory)).toEqual({ ...record, client: "two" });
  const [file = ""] = readdirSync(directory);
  expect([statSync(directory).mode & 0o777, statSync(join(directory, file)).mode & 0o777]).toEqual([
    0o700, 0o600,
  ]);
  expect(keptDirectories(home)).toEqual([directory]);
  removeKept(directory);
  expect(keptDirectories(home)).toEqual([]);
});

it("are none where a file is missing, broken or of a later version, and where nothing was ever kept", async () => {
  const home = await temporaryFolder();
  const directory = newKeptDirectory(home);
  mkdirSync(directory);
  expect(readKept(directory)).toBeNull();
  for (const text of ["", "{", JSON.stringify({ ...record, format: 2 }), JSON.stringify({ format: 1 })]) {
    writeFileSync(join(directory, "service.json"), text);
    expect(readKept(directory), text).toBeNull();
  }
  expect(keptDirectories(join(home, "none"))).toEqual([]);
});

it("are forgotten if a later one cannot be written, which might say less", async () => {
  const home = await temporaryFolder();
  const directory = newKeptDirectory(home);
  writeKept(directory, record);
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  expect(() => writeKept(directory, { ...record, env: circular as never })).toThrow(
    expect.objectContaining({ code: "store.failed" }),
  );
  expect(readKept(directory)).toBeNull();
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
});
