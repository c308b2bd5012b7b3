import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { endProcess, firstOutput, killOwner, lastingPlace, upIn } from "../../support/lasting.js";

const patience = { timeout: 60_000, interval: 100 };
const counting =
  "i=0; while [ $i -lt 400 ]; do i=$((i+1)); echo line $i; echo err $i >&2; sleep 0.01; done; exit 7";
const lines = (word: string) => Array.from({ length: 400 }, (_, i) => `${word} ${i + 1}\n`).join("");

describe("a command in a lasting sandbox whose owner is killed", () => {
  it.each([
    ["with the quick client", []],
    ["with the whole program", ["--timeout", "10m"]],
  ])("goes on with the next owner, %s, and no byte is lost or doubled", async (_, options) => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const counts = place.start(["exec", "--in", "one", ...options, "--", "sh", "-c", counting]);
    const repeats = place.start(["exec", "--in", "one", "-i", ...options, "--", "cat"], {
      holdsInputOpen: true,
    });
    let given = "begun\n";
    repeats.stdin?.write(given);
    await Promise.all([firstOutput(counts), firstOutput(repeats)]);
    for (let killed = 0; killed < 3; killed++) {
      for (let i = 0; i < 200; i++) {
        const word = `word ${killed} ${i} ${"x".repeat(i * 10)}\n`;
        given += word;
        repeats.stdin?.write(word);
        if (i % 50 === 0) await sleep(Math.random() * 20);
      }
      await killOwner(place);
    }
    repeats.stdin?.end();
    const repeated = await repeats;
    expect([repeated.exitCode, repeated.stderr]).toEqual([0, ""]);
    expect(repeated.stdout === given).toBe(true);
    expect(await counts).toMatchObject({ exitCode: 7, stdout: lines("line"), stderr: lines("err") });
    await place.run("rm", "one");
  });
});

describe("a terminal in a lasting sandbox whose owner is killed", () => {
  const prompt = /[$#] $/;

  it("goes on where it was: its shell, what is typed meanwhile, and its size", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const shell = await place.terminal(["shell", "--in", "one"]);
    await shell.waitFor(prompt);
    shell.type("remembered=this; echo set-$remembered\r");
    await shell.waitFor(/set-this/);
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    // There is no owner yet that could take it.
    shell.type("echo still-$remembered $((40 + 2))\r");
    await shell.waitFor(/still-this 42/);
    shell.type("exit 3\r");
    expect((await shell.end()).exitStatus).toBe(3);
    await place.run("rm", "one");
  });

  it("goes on with the shell that all share, for all who have attached", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const first = await place.terminal(["attach", "one"]);
    await first.waitFor(prompt);
    const second = await place.terminal(["attach", "one"]);
    await second.waitFor(prompt);
    first.type("remembered=this; echo set-$remembered\r");
    await second.waitFor(/set-this/);
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    second.type("echo still-$remembered\r");
    for (const terminal of [first, second]) await terminal.waitFor(/still-this/);
    first.type("echo $((6 * 7))-typed\r");
    for (const terminal of [first, second]) await terminal.waitFor(/42-typed/);
    for (const terminal of [first, second]) {
      terminal.type("\u0010\u0011");
      expect((await terminal.end()).exitStatus).toBe(0);
    }
    await place.run("rm", "one");
  });
});

describe("a command in a lasting sandbox whose owner and client are killed", () => {
  it("is ended by the next owner, and the sandbox stays", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const client = place.start(["exec", "--in", "one", "--", "sh", "-c", "echo $$; exec sleep 1000"]);
    const pid = await firstOutput(client);
    const isRunning = async () =>
      (await place.run("exec", "--in", "one", "--", "test", "-e", `/proc/${pid}`)).exitCode;
    expect(await isRunning()).toBe(0);
    client.kill("SIGKILL");
    await Promise.all([client, killOwner(place)]);
    await expect.poll(isRunning, patience).toBe(1);
    await place.run("rm", "one");
  });
});
