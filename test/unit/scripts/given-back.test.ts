import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, it, onTestFinished } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));

const stubbing = `
import { it, vi } from "vitest";
it("stubs", () => {
  vi.stubEnv("BRIG_TEST_STUB", "left over");
  vi.spyOn(Math, "random").mockReturnValue(7);
});`;

const looking = `
import { beforeAll, expect, it } from "vitest";
let seen;
beforeAll(() => { seen = [process.env.BRIG_TEST_STUB, Math.random() < 1]; });
it("looks", () => expect(seen).toEqual([undefined, true]));`;

async function runInOrder(setupFiles: string[]) {
  const directory = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(directory, { recursive: true }));
  const test = { isolate: false, fileParallelism: false, restoreMocks: true, unstubEnvs: true, setupFiles };
  const inOrder =
    "class { shard(files) { return files; } sort(files) { return files.sort((a, b) => (a.moduleId < b.moduleId ? -1 : 1)); } }";
  const config = `export default { test: { ...${JSON.stringify(test)}, sequence: { sequencer: ${inOrder} } } };`;
  await writeFile(join(directory, "vitest.config.mjs"), config);
  await writeFile(join(directory, "1.test.js"), stubbing);
  await writeFile(join(directory, "2.test.js"), looking);
  const vitest = join(root, "node_modules/vitest/vitest.mjs");
  const argv = [vitest, "run", "--config", "vitest.config.mjs", "--no-color"];
  return execa(process.execPath, argv, { cwd: directory, reject: false, all: true });
}

it("the first hooks of a file see nothing that the last test of another has stubbed or spied on", async () => {
  const shared = await runInOrder([]);
  expect(shared.all).toMatch(/Tests {2}1 failed \| 1 passed/);
  const givenBack = await runInOrder([join(root, "test/support/given-back.ts")]);
  expect(givenBack.all).toMatch(/Tests {2}2 passed/);
});
