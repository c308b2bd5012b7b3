import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, expect, it } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { LABELS } from "../../../src/sandbox/labels.js";
import { createPool } from "../../../src/sandbox/pool.js";
import { openFree } from "../../../src/services/serve/sandboxes/open-free.js";
import { testEngine } from "../../support/engine.js";
import { always, type FaultyEngine, faultyEngine } from "../../support/faulty-engine.js";
import { testRuntime } from "../../support/runtime-differences.js";
import { openServed } from "../../support/served.js";

let faulty: FaultyEngine;

beforeAll(async () => {
  faulty = await faultyEngine();
});

afterAll(async () => await faulty[Symbol.asyncDispose]());

it("a warm sandbox is closed if the engine says nothing of its image", async () => {
  const engine = await testEngine();
  await using pool = createPool({ size: 1, runtime: testRuntime, engine });
  await pool.filled();
  faulty.decide(always(/^GET \/images\//, "refused"));
  const places = {
    ...{ engine: faulty.engine, environment: readEnvironment(), runtime: testRuntime, image: "brig/base" },
    ...({ mode: "workspace-write", allowsNetwork: false, images: null, pool } as const),
  };
  const { signal } = new AbortController();
  await expect(openFree({}, { places, directory: tmpdir(), signal })).rejects.toMatchObject({
    code: "engine.failed",
  });
  await pool.close();
  expect(await ownContainers()).toEqual([]);
});

it("a warm sandbox has the directory that was asked for, where the mode lets it be made", async () => {
  await using served = await openServed({ warm: 1, mode: "danger-full-access" });
  await using sandbox = await served.client.createSandbox({ workingDirectory: "/made/for/this" });
  expect((await sandbox.exec(["pwd"])).stdout).toBe("/made/for/this\n");
});

it("the place of a sandbox that could not be removed is free again once it can be", async () => {
  faulty.decide(() => "passes");
  await using served = await openServed({ engine: faulty.engine });
  await served.client.createSandbox({ idleMs: 200 });
  faulty.withholdEnd();
  faulty.decide(always(/^DELETE \/containers\//, "refused"));
  await expect.poll(() => served.warnings, { timeout: 60_000 }).not.toEqual([]);
  expect((await served.client.health()).sandboxes).toBe(1);
  faulty.decide(() => "passes");
  await expect.poll(async () => (await served.client.health()).sandboxes, { timeout: 60_000 }).toBe(0);
  expect(await ownContainers()).toEqual([]);
});

it("the place of a sandbox whose container was killed is free at once, and its client is told what became of it", async () => {
  await using served = await openServed({ limits: { maxPlaces: 1 } });
  const dead = await served.client.createSandbox();
  const engine = await testEngine();
  for (const id of await ownContainers()) await engine.killContainer(id);
  const other = await served.client.createSandbox({ waitMs: 60_000 });
  expect((await other.exec(["echo", "runs"])).stdout).toBe("runs\n");
  await expect(dead.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
  expect((await served.client.listSandboxes()).map(({ record }) => record.state)).toEqual(["ended", "open"]);
  expect((await served.client.health()).sandboxes).toBe(1);
});

it("a service that cannot remove what an episode has left closes its sandboxes all the same", async () => {
  const served = await openServed();
  await served.client.createSandbox();
  await served.client.runEpisode({ instruction: "nothing", check: "true", agent: "nop" });
  await rm(served.directory, { recursive: true });
  await writeFile(served.directory, "no directory any more");
  await served.stop();
  expect(served.warnings).toMatchObject([{ code: "ENOTDIR" }]);
  expect(await ownContainers()).toEqual([]);
});

/** The containers of this process. */
async function ownContainers(): Promise<string[]> {
  const engine = await testEngine();
  const containers = await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`]);
  return containers.map(({ id }) => id);
}
