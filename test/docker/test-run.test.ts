import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { expect, onTestFinished } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { LABELS } from "../../src/sandbox/labels.js";
import { brig } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import { sandboxTest } from "../support/sandbox.js";

const run = fileURLToPath(new URL("../fixtures/test-run.ts", import.meta.url));
const tsx = fileURLToPath(new URL("../../node_modules/.bin/tsx", import.meta.url));

/** Another test run in that directory, and what it had to say at its end. */
async function testRun(cwd: string, ending: "clean" | "leaves" | "killed") {
  const { stdout } = await execa(tsx, [run, ending], {
    cwd,
    env: { BRIG_TEST_RUN: undefined },
    reject: false,
  });
  return stdout;
}

async function keptBy(pid: number | undefined): Promise<string[]> {
  const containers = await (await testEngine()).listContainers([`${LABELS.ownerPid}=${pid}`]);
  return containers.map(({ id }) => id);
}

/** The sandboxes whose workspace is this directory: others on this machine come and go meanwhile. */
async function sessionsIn(engine: Engine, directory: string): Promise<Set<string>> {
  const sessions = await engine.listContainers([LABELS.session]);
  return new Set(
    sessions.filter(({ labels }) => JSON.stringify(labels).includes(directory)).map(({ id }) => id),
  );
}

sandboxTest("a test run removes and reports only what test runs have made", async ({ directory }) => {
  const engine = await testEngine();
  const person = brig(["exec", "--keep", "--", "true"], { cwd: directory });
  const [kept] = await person.then(() => keptBy(person.pid));
  onTestFinished(async () => await engine.removeContainer(kept ?? ""));
  expect(kept).toBeDefined();

  expect(await testRun(directory, "clean")).toBe("nothing left");
  const left = await testRun(directory, "leaves");
  expect(left).toContain("the tests left behind:\ncontainer brig-");
  const [, name = ""] = /container (brig-\S+) /.exec(left) ?? [];
  await engine.removeContainer(name);

  const before = await sessionsIn(engine, directory);
  await testRun(directory, "killed");
  const orphan = [...(await sessionsIn(engine, directory))].find((id) => !before.has(id));
  expect(await testRun(directory, "clean")).toBe("nothing left");
  expect(await engine.inspectContainer(orphan ?? "")).toBeNull();
  expect(await engine.inspectContainer(kept ?? "")).toMatchObject({ running: true });
});
