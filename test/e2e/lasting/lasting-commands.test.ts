import { readdir } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { firstOutput, lastingPlace, upIn } from "../../support/lasting.js";

const prompt = /[#$] $/;

describe("brig exec --in", () => {
  it("gives a command a terminal, and the terminal's size and status", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const terminal = await place.terminal([
      "exec",
      "--in",
      "one",
      "-it",
      "--",
      "sh",
      "-c",
      "stty size; read line; echo got $line; exit 7",
    ]);
    await terminal.waitFor(/30 100/);
    terminal.type("words\r");
    await terminal.waitFor(/got words/);
    const { exitStatus, settingsAfter, settingsBefore } = await terminal.end();
    expect([exitStatus, settingsAfter]).toEqual([7, settingsBefore]);
  });

  it("ends the command at ctrl-C, and passes what it prints to a terminal without control sequences", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const terminal = await place.terminal([
      "exec",
      "--in",
      "one",
      "--",
      "sh",
      "-c",
      "printf 'be\\033[2Jgun'; exec sleep 1000",
    ]);
    await terminal.waitFor(/gun/);
    expect(terminal.shown).not.toContain("\u001b[2J");
    terminal.type("\u0003");
    expect((await terminal.end()).exitStatus).toBe(130);
    expect((await place.run("exec", "--in", "one", "--", "pgrep", "sleep")).exitCode).toBe(1);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("ends the command at %s, and exits with %i", async (signal, status) => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const client = place.start(["exec", "--in", "one", "--", "sh", "-c", "echo begun; exec sleep 1000"]);
    await firstOutput(client);
    client.kill(signal);
    const { exitCode, stderr } = await client;
    expect([exitCode, stderr]).toEqual([status, `brig: interrupted by ${signal}\n`]);
    expect((await place.run("exec", "--in", "one", "--", "pgrep", "sleep")).exitCode).toBe(1);
  });

  it("says the same as the whole program where the short way is taken, and is quiet when nobody reads any more", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    for (const args of [
      ["--", "sh", "-c", "echo out; echo err >&2; exit 3"],
      ["no-such-program"],
      ["-C", "/no/such", "--", "true"],
      ["-e", "A=b", "sh", "-c", "echo $A"],
      ["--", "sh", "-c", "kill -9 $$"],
    ]) {
      const words = ["exec", "--in", "one", ...args];
      const { exitCode, stdout, stderr } = await place.start(words);
      expect({ exitCode, stdout, stderr }, words.join(" ")).toEqual(await place.run(...words));
    }
    for (const args of [
      ["--in", "none", "--", "true"],
      ["--in", "one"],
      ["--in", "one", "--no-such", "--", "true"],
    ]) {
      const { exitCode, stdout, stderr } = await place.start(["exec", ...args]);
      const whole = await place.run("exec", ...args);
      expect({ exitCode, stdout, stderr }).toEqual(whole);
      expect(exitCode).toBe(125);
    }
    const endless = place.start(["exec", "--in", "one", "--", "yes"], { keepsOutput: false });
    await firstOutput(endless);
    endless.stdout.destroy();
    expect(await endless).toMatchObject({ exitCode: 141, stderr: "" });
    await expect
      .poll(async () => (await place.run("exec", "--in", "one", "--", "pgrep", "yes")).exitCode, {
        timeout: 10_000,
      })
      .toBe(1);
  });

  it("starts a command with -d that outlives its client, prints its id, and logs what it prints", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const script = "echo first; while [ ! -e /tmp/go ]; do sleep 0.1; done; echo last";
    const started = await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", script);
    expect(started).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^[0-9a-f]{12}\n$/) });
    await expect.poll(async () => (await place.run("logs", "one")).stdout).toBe("first\n");
    const following = place.run("logs", "-f", "one");
    await firstOutput(following);
    await place.run("exec", "--in", "one", "--", "sh", "-c", "echo between; echo err >&2");
    await place.run("exec", "--in", "one", "--", "touch", "/tmp/go");
    await expect.poll(async () => (await place.run("logs", "one")).stdout).toBe("first\nbetween\nlast\n");
    await place.run("stop", "one");
    expect(await following).toMatchObject({ exitCode: 0, stdout: "first\nbetween\nlast\n", stderr: "err\n" });
    expect((await place.run("logs", "one")).stdout).toBe("first\nbetween\nlast\n");
    await place.run("rm", "one");
    expect((await place.run("logs", "one")).exitCode).toBe(2);
    expect((await readdir(`${place.home}/lasting`)).filter((name) => !name.startsWith("."))).toEqual([]);
    for (const args of [
      ["-d", "--", "true"],
      ["--in", "one", "-d", "-i", "--", "true"],
    ])
      expect((await place.run("exec", ...args)).exitCode).toBe(125);
  });
});

it("brig port makes a port of a lasting sandbox reachable, by its name", async () => {
  const place = await lastingPlace();
  await upIn(place, "--name", "one");
  await place.run(
    "exec",
    "--in",
    "one",
    "-d",
    "--",
    "python3",
    "-m",
    "http.server",
    "3000",
    "--bind",
    "127.0.0.1",
  );
  let url = "";
  await expect
    .poll(async () => {
      url = (await place.run("port", "one", "0:3000")).stdout.trim();
      return url;
    })
    .toMatch(/^http:/);
  await expect.poll(async () => (await fetch(url).catch(() => null))?.status).toBe(200);
  const refused = await place.run("up", "--network", "learn");
  expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("--network learn")]);
});

it("brig stats says what sandboxes use", async () => {
  const place = await lastingPlace();
  expect((await place.run("stats")).stderr).toBe("no sandbox of brig up is running\n");
  await upIn(place, "--name", "one", "--memory", "512m", "--pids", "99");
  await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", "while :; do :; done");
  const [used] = JSON.parse((await place.run("stats", "--json")).stdout);
  expect(used).toMatchObject({ name: "one", memoryLimitBytes: 512 * 1024 ** 2, pidsLimit: 99 });
  expect(used.cpuPercent).toBeGreaterThan(1);
  expect(used.memoryBytes).toBeGreaterThan(0);
  expect(used.pids).toBeGreaterThan(1);
  const table = (await place.run("stats", "one")).stdout;
  expect(table).toMatch(/^NAME +SANDBOX +CPU +MEMORY +LIMIT +PROCESSES\none /);
});

describe("brig attach and brig shell --in", () => {
  it("share one shell, or have one of their own", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const first = await place.terminal(["attach", "one"]);
    await first.waitFor(prompt);
    first.type("shared=yes; cd /tmp\r");
    const second = await place.terminal(["attach", "one"]);
    await second.waitFor(prompt);
    second.type("echo is-$shared-$PWD\r");
    await second.waitFor(/is-yes-\/tmp/);
    await first.waitFor(/is-yes-\/tmp/);
    first.type("\u0010\u0011");
    expect((await first.end()).exitStatus).toBe(0);
    const own = await place.terminal(["shell", "--in", "one"]);
    await own.waitFor(prompt);
    own.type("echo own-$shared-; exit 4\r");
    await own.waitFor(/own--/);
    expect((await own.end()).exitStatus).toBe(4);
    const again = await place.terminal(["attach", "one"]);
    await again.waitFor(prompt);
    again.type("echo still-$shared; exit 5\r");
    expect((await again.end()).exitStatus).toBe(5);
    expect(again.shown).toContain("still-yes");
    expect((await second.end()).exitStatus).toBe(5);
    const other = await place.run("attach", "none");
    expect(other.exitCode).toBe(125);
  });
});

describe("a sandbox with --idle or --max-life", () => {
  it("ends when nobody has used it, and not while a command runs, nor with an old age that was not reached", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "busy", "--idle", "6s");
    await place.run("exec", "--in", "busy", "-d", "--", "sleep", "1000");
    await upIn(place, "--name", "idle", "--idle", "1s");
    await upIn(place, "--name", "short", "--max-life", "6s");
    const running = place.run("exec", "--in", "short", "--", "sleep", "1000");
    const states = async () => JSON.parse((await place.run("ps", "--all", "--json")).stdout);
    await sleep(7000);
    await expect.poll(states, { timeout: 60_000 }).toMatchObject([
      { name: "busy", state: "running" },
      { name: "idle", state: "stopped" },
      { name: "short", state: "stopped" },
    ]);
    expect((await running).exitCode).toBe(125);
    expect((await place.run("exec", "--in", "idle", "--", "true")).stderr).toContain("--idle");
    expect((await place.run("exec", "--in", "short", "--", "true")).stderr).toContain("--max-life");
  });
});
