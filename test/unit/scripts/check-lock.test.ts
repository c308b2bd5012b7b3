import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";

const script = fileURLToPath(new URL("../../../scripts/check-lock.mjs", import.meta.url));
const integrity = `sha512-${"a".repeat(86)}==`;

async function check(entry: object) {
  const directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const file = join(directory, "package-lock.json");
  await writeFile(file, JSON.stringify({ packages: { "": { name: "root" }, "node_modules/one": entry } }));
  const { exitCode, stderr } = await execa(process.execPath, [script, file], { reject: false });
  return { exitCode, stderr };
}

describe("the check of the lock file", () => {
  it("passes packages with a hash, from the public registry or from wherever npm is told to look", async () => {
    const resolved = "https://registry.npmjs.org/one/-/one-1.0.0.tgz";
    expect(await check({ version: "1.0.0", integrity })).toEqual({ exitCode: 0, stderr: "" });
    expect(await check({ version: "1.0.0", integrity, resolved })).toEqual({ exitCode: 0, stderr: "" });
  });

  it.each([
    ["without a hash", { version: "1.0.0" }, "node_modules/one: has no sha512 integrity"],
    ["with a weak hash", { integrity: "sha1-abc" }, "node_modules/one: has no sha512 integrity"],
    ["from another host", { integrity, resolved: "http://10.0.0.1/one.tgz" }, "comes from http://10.0.0.1"],
  ])("refuses a package %s", async (_, entry, fault) => {
    const { exitCode, stderr } = await check(entry);
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining(fault)]);
  });
});
