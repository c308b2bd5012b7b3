import { describe, expect, it } from "vitest";
import { LABELS } from "../../../src/sandbox/labels.js";
import { testEngine } from "../../support/engine.js";
import { temporaryDirectory } from "../../support/sandbox.js";
import { openServed } from "../../support/served.js";
import { taskOf } from "../../support/task-attempts.js";
import { openSocket } from "../../support/web-socket-client.js";

it("a service that ends lets calls end, begins nothing new, and leaves no container", async () => {
  const served = await openServed({ warm: 1 });
  const sandbox = await served.client.createSandbox();
  expect(await ownContainers()).not.toEqual([]);
  let output = "";
  const running = sandbox.stream(
    ["sh", "-c", "echo begun; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo ended"],
    {
      onStdout: (chunk) => {
        output += Buffer.from(chunk).toString();
      },
    },
  );
  await expect.poll(() => output, { timeout: 30_000 }).toBe("begun\n");
  const drained = served.drain();
  await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "serve.busy" });
  await expect(served.otherClient.createSandbox()).rejects.toMatchObject({ code: "serve.busy" });
  expect((await served.client.health()).status).toBe("draining");
  await sandbox.files.write("/tmp/go", "");
  expect(await running).toMatchObject({ exitCode: 0 });
  expect(output).toBe("begun\nended\n");
  await drained;
  await expect(served.client.health()).rejects.toMatchObject({ code: "serve.unreachable" });
  expect(await ownContainers()).toEqual([]);
  await served.stop();
});

it("a service that ends does not wait for processes, nor for those who wait for them", async () => {
  const served = await openServed();
  const sandbox = await served.client.createSandbox();
  const process = await sandbox.spawn(["sleep", "1000"]);
  process.stdin?.write(Buffer.alloc(5_000_000));
  const path = `${served.url}/v1/sandboxes/${sandbox.id}/processes/${process.id}`;
  const headers = { authorization: `Bearer ${served.tokens[0]}` };
  const client = await openSocket(`${path}/attach`, { headers });
  const waiting = Promise.allSettled([
    fetch(`${path}?waitMs=60000`, { headers }),
    fetch(`${path}/output?waitMs=60000`, { headers }),
  ]);
  await served.drain();
  expect((await client.closed).code).toBe(1001);
  await waiting;
  await expect(process.exit).rejects.toMatchObject({ code: "serve.unreachable" });
  expect(await ownContainers()).toEqual([]);
  expect(served.warnings).toEqual([]);
  await served.stop();
});

it("a service that is ended at once ends what runs, and leaves no container", async () => {
  const served = await openServed();
  const sandbox = await served.client.createSandbox();
  const running = sandbox.exec(["sleep", "1000"]);
  running.catch(() => undefined);
  await expect
    .poll(async () => (await sandbox.exec(["pgrep", "sleep"])).exitCode, { timeout: 30_000 })
    .toBe(0);
  await served.stop();
  await expect(running).rejects.toMatchObject({ name: "BrigError" });
  expect(await ownContainers()).toEqual([]);
  expect(served.warnings).toEqual([]);
});

describe("a service that is ended at once", () => {
  it("does not wait for the agent of an episode", async () => {
    const served = await openServed();
    await served.client.createEpisode({
      instruction: "sleep",
      check: "true",
      agent: { command: "sleep 1000" },
    });
    const stages = async () => (await served.client.listEpisodes()).map(({ stage }) => stage);
    await expect.poll(stages, { timeout: 60_000 }).toEqual(["agent"]);
    await served.stop();
    expect(await ownContainers()).toEqual([]);
  });

  it("does not wait for the tests of a task", async () => {
    await using directory = await temporaryDirectory();
    const testScript = "#!/bin/sh\nsleep 1000\n";
    const task = await taskOf(directory.path, { testScript, verifier: { timeoutSec: 1000 } });
    const served = await openServed({ tasks: [task] });
    const sandbox = await served.client.createSandbox({ task: "test" });
    const graded = sandbox.grade();
    graded.catch(() => undefined);
    const state = async () => (await served.client.getSandbox(sandbox.id)).record.state;
    await expect.poll(state, { timeout: 30_000 }).toBe("grading");
    await served.stop();
    await expect(graded).rejects.toMatchObject({ name: "BrigError" });
    expect(await ownContainers()).toEqual([]);
  });
});

it("a service that ends gives no place to those that wait for one", async () => {
  const served = await openServed({ limits: { maxPlaces: 1, maxPerClient: 1 } });
  const sandbox = await served.client.createSandbox();
  const running = sandbox.exec(["sh", "-c", "while [ ! -e /tmp/go ]; do sleep 0.1; done"]);
  const waiting = [
    served.client.createSandbox({ waitMs: 60_000 }),
    served.otherClient.createEpisode({ instruction: "x", check: "true", waitMs: 60_000 }),
  ];
  const settled = Promise.allSettled(waiting);
  // Another one is refused as soon as both wait.
  const refused = async () =>
    await served.client.createSandbox({ waitMs: 1 }).catch(({ message }) => String(message));
  await expect.poll(refused, { timeout: 30_000 }).toContain("2 requests wait");
  const drained = served.drain();
  expect(await settled).toMatchObject([
    { status: "rejected", reason: { code: "serve.busy", message: "the service is ending" } },
    { status: "rejected", reason: { code: "serve.busy", message: "the service is ending" } },
  ]);
  await sandbox.files.write("/tmp/go", "");
  expect((await running).exitCode).toBe(0);
  await drained;
  await served.stop();
});

/** The containers of this process. */
async function ownContainers(): Promise<string[]> {
  const engine = await testEngine();
  const containers = await engine.listContainers([`${LABELS.ownerPid}=${process.pid}`]);
  return containers.map(({ id }) => id);
}
