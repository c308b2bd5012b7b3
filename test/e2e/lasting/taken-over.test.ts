import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { connectSandbox } from "../../../src/services/index.js";
import { testEngine } from "../../support/engine.js";
import { silencedEngine } from "../../support/engine-proxy.js";
import {
  endProcess,
  firstOutput,
  killOwner,
  type LastingPlace,
  lastingPlace,
  upIn,
  watchersOf,
} from "../../support/lasting.js";

const prompt = /[$#] $/;
const patience = { timeout: 30_000, interval: 100 };

async function containerOf(place: LastingPlace, name: string) {
  const listed = JSON.parse((await place.run("ps", "--json")).stdout);
  const { id } = listed.find((one: { name: string }) => one.name === name);
  return await (await testEngine()).inspectContainer(`brig-${id}`);
}

describe("a lasting sandbox whose owner is killed", () => {
  it("goes on with another owner, with its commands and all that they print", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const counting = "i=0; while [ $i -lt 600 ]; do i=$((i+1)); echo line $i; sleep 0.01; done; echo ended";
    await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", counting);
    for (let killed = 0; killed < 4; killed++) {
      await sleep(Math.random() * 700);
      await killOwner(place);
    }
    const logs = async () => (await place.run("logs", "one")).stdout;
    await expect.poll(logs, patience).toContain("ended\n");
    const lines = Array.from({ length: 600 }, (_, i) => `line ${i + 1}\n`).join("");
    expect(await logs()).toBe(`${lines}ended\n`);
    // What the last owner starts is in the same sandbox.
    expect((await place.run("exec", "--in", "one", "--", "pwd")).stdout).toBe(`${place.workspace}\n`);
    const { exitCode } = await place.run("rm", "one");
    expect(exitCode).toBe(0);
    expect(await readdir(join(place.home, "sandboxes"))).toEqual([]);
    expect((await readdir(join(place.home, "lasting"))).filter((name) => name.startsWith("one"))).toEqual([]);
  });

  it("is taken over by the next command if nobody is there to notice it", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    await place.run("exec", "--in", "one", "--", "sh", "-c", "echo kept > /tmp/file");
    await expect.poll(async () => (await watchersOf(place)).length, patience).toBe(1);
    for (const pid of await watchersOf(place)) process.kill(pid, "SIGKILL");
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    await sleep(500);
    expect(await place.ownerPid()).toBeNull();
    // Whoever cleans up in between leaves it alone.
    expect((await place.run("gc")).exitCode).toBe(0);
    expect((await place.run("exec", "--in", "one", "--", "cat", "/tmp/file")).stdout).toBe("kept\n");
    expect(await containerOf(place, "one")).toMatchObject({ running: true });
    await place.run("rm", "one");
  });

  it("is taken over by Sandbox.connect, too", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    await place.run("exec", "--in", "one", "--", "sh", "-c", "echo kept > /tmp/file");
    await expect.poll(async () => (await watchersOf(place)).length, patience).toBe(1);
    for (const pid of await watchersOf(place)) process.kill(pid, "SIGKILL");
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    const environment = { ...readEnvironment(), brigHome: place.home };
    const sandbox = await connectSandbox("one", { environment });
    expect((await sandbox.exec(["cat", "/tmp/file"])).stdout).toBe("kept\n");
    await sandbox.close();
    expect(await containerOf(place, "one")).toMatchObject({ running: true });
    await place.run("rm", "one");
  });

  it("is taken over once the engine answers, if that fails at first", async () => {
    await using proxy = await silencedEngine();
    const place = await lastingPlace();
    const env = { DOCKER_HOST: proxy.endpoint };
    expect(await place.start(["up", "--name", "one"], { env })).toMatchObject({ exitCode: 0 });
    const waiting = place.start(
      [
        ...["exec", "--in", "one", "--"],
        ...["sh", "-c", "echo begun; until [ -e /tmp/file ]; do sleep 0.1; done; echo seen"],
      ],
      { env },
    );
    await firstOutput(waiting);
    proxy.refuses = true;
    await killOwner(place);
    const early = await place.start(["exec", "--in", "one", "--", "true"], { env });
    expect([early.exitCode, early.stderr]).toEqual([125, expect.stringContaining("did not answer yet")]);
    expect((await place.start(["rm", "one"], { env })).exitCode).not.toBe(0);
    proxy.refuses = false;
    const touch = async () =>
      (await place.start(["exec", "--in", "one", "--", "touch", "/tmp/file"], { env })).exitCode;
    await expect.poll(touch, patience).toBe(0);
    const { exitCode, stdout, stderr } = await waiting;
    expect([exitCode, stdout, stderr]).toEqual([0, "begun\nseen\n", ""]);
    expect((await place.start(["rm", "one"], { env })).exitCode).toBe(0);
  });

  it("keeps the shell that all who attach share", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const first = await place.terminal(["attach", "one"]);
    await first.waitFor(prompt);
    first.type("remembered=this; echo set-$remembered\r");
    await first.waitFor(/set-this/);
    first.type("\u0010\u0011");
    expect((await first.end()).exitStatus).toBe(0);
    await killOwner(place);
    const again = await place.terminal(["attach", "one"]);
    await again.waitFor(prompt);
    again.type("echo still-$remembered\r");
    await again.waitFor(/still-this/);
    again.type("\u0010\u0011");
    expect((await again.end()).exitStatus).toBe(0);
    await place.run("rm", "one");
  });
});
