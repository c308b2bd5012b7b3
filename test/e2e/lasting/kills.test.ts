import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import type { RemoteProcess } from "../../../src/services/serve/client/client-types.js";
import { testEngine } from "../../support/engine.js";
import { runs } from "../../support/fuzz.js";
import { keptPlace } from "../../support/kept-service.js";
import { endProcess, firstOutput, type LastingPlace, lastingPlace, upIn } from "../../support/lasting.js";

/** How often each thing is killed, at a moment that nobody has chosen. */
const rounds = runs({ short: 2, deep: 8 });

const patience = { timeout: 60_000, interval: 50 };
const someTime = async () => await sleep(Math.random() * 600);

/** Prints numbers until there is a file, and then how many these were. */
const counting =
  "i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo line $i; sleep 0.003; done; echo $i in all; exit 7";

function isWhole(text: string): boolean {
  const count = Number(/([0-9]+) in all\n$/.exec(text)?.[1]);
  const lines = Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("");
  return count > 0 && text === `${lines}${count} in all\n`;
}

/** What is given to a `cat`, piece by piece. */
class Given {
  text = "";
  #number = 0;

  next(): string {
    const piece = Array.from(
      { length: 1 + Math.floor(Math.random() * 200) },
      () => `given ${++this.#number}\n`,
    );
    this.text += piece.join("");
    return piece.join("");
  }
}

async function idOf(place: LastingPlace): Promise<string> {
  return JSON.parse((await place.run("ps", "--json")).stdout)[0].id;
}

async function expectNothingLeft(home: string, ids: readonly string[]): Promise<void> {
  const engine = await testEngine();
  for (const id of ids) {
    expect(await engine.listContainers([`brig.session=${id}`])).toEqual([]);
    expect(await engine.listVolumes([`brig.session=${id}`])).toEqual([]);
  }
  expect(await readdir(join(home, "sandboxes"))).toEqual([]);
}

/** The longest of these tests kills twice in a round, and starts a sandbox each time. */
const timeout = 300_000 + rounds * 30_000;

describe(`killed ${rounds} times at random moments`, { timeout }, () => {
  it("the owner of a lasting sandbox costs no command, and no byte of one", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const id = await idOf(place);
    const counts = place.start(["exec", "--in", "one", "--", "sh", "-c", counting]);
    const repeats = place.start(["exec", "--in", "one", "-i", "--", "cat"], { holdsInputOpen: true });
    const detached = `${counting.replace("exit 7", "touch /tmp/ended")}`;
    await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", detached);
    const given = new Given();
    repeats.stdin?.write(given.next());
    await Promise.all([firstOutput(counts), firstOutput(repeats)]);
    for (let killed = 0; killed < rounds; killed++) {
      const writing = setInterval(() => repeats.stdin?.write(given.next()), 5);
      await someTime();
      await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
      await someTime();
      clearInterval(writing);
      await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
    }
    await place.run("exec", "--in", "one", "--", "touch", "/tmp/enough");
    repeats.stdin?.end();
    const [counted, repeated] = await Promise.all([counts, repeats]);
    expect([counted.exitCode, counted.stderr, isWhole(counted.stdout)]).toEqual([7, "", true]);
    expect([repeated.exitCode, repeated.stderr, repeated.stdout === given.text]).toEqual([0, "", true]);
    await place.run("exec", "--in", "one", "--", "sh", "-c", "until [ -e /tmp/ended ]; do sleep 0.1; done");
    const logged = (await place.run("logs", "one")).stdout;
    expect(logged).toMatch(/^[0-9]+ in all$/m);
    expect((await place.run("rm", "one")).exitCode).toBe(0);
    await expectNothingLeft(place.home, [id]);
  });

  it("the owner that starts a sandbox leaves either all of it or nothing", async () => {
    const place = await lastingPlace();
    const ids = new Set<string>();
    const note = async () => {
      for (const { labels } of await (await testEngine()).listContainers(["brig.session"]))
        if (owners.has(labels["brig.owner-pid"] ?? "")) ids.add(`${labels["brig.session"]}`);
    };
    const owners = new Set<string>();
    for (let killed = 0; killed < 2 * rounds; killed++) {
      const kind = killed % 2 === 0 ? "bind" : "overlay";
      const starting = place.start(["up", "--name", `n${killed}`, "--workspace", kind]);
      await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
      const pid = (await place.ownerPid()) ?? 0;
      owners.add(`${pid}`);
      const kept = join(place.home, "lasting", `n${killed}.kept`);
      await expect.poll(() => existsSync(kept), { timeout: 60_000, interval: 2 }).toBe(true);
      await sleep(Math.random() * 300);
      await note();
      await endProcess(pid, "SIGKILL");
      await starting;
      await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
    }
    let listed: { name: string; id: string }[] = [];
    const names = async () => {
      listed = JSON.parse((await place.run("ps", "--json")).stdout);
      return listed.map(({ name }) => name);
    };
    // The last owner may still be removing what the one before it had begun.
    await expect.poll(names, patience).not.toContain(null);
    for (const { name, id } of listed) {
      ids.add(id);
      expect((await place.run("exec", "--in", name, "--", "echo", name)).stdout).toBe(`${name}\n`);
      expect((await place.run("rm", name)).exitCode).toBe(0);
    }
    // A tree whose container was not asked for yet is found by this.
    expect((await place.run("gc")).exitCode).toBe(0);
    const lasting = await readdir(join(place.home, "lasting"));
    expect(lasting.filter((name) => name.startsWith("n"))).toEqual([]);
    await expectNothingLeft(place.home, [...ids]);
  });

  it("the owner that undoes a command leaves its changes whole, or undone", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one", "--workspace", "overlay");
    const id = await idOf(place);
    const run = async (script: string) =>
      (await place.run("exec", "--in", "one", "--", "bash", "-ec", script)).stdout;
    const write = async (text: string) =>
      await run(`mkdir -p d{0..19}; for i in {1..300}; do echo ${text} > d$((i % 20))/f$i; done`);
    await write("before");
    for (let killed = 0; killed < rounds; killed++) {
      await write("after");
      // New contents are in a directory of brig's before they take their places.
      const watch = "until ls -d .brig-stage-* 2>/dev/null; do sleep 0.005; done";
      const watching = place.start(["exec", "--in", "one", "--", "sh", "-c", watch]);
      const undoing = place.start(["undo", "one"]);
      await firstOutput(watching);
      await sleep(Math.random() * 150);
      await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
      await Promise.all([undoing, watching]);
      await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
      expect(await run("cat d*/f* | sort | uniq -c")).toMatch(/^ *300 (before|after)\n$/);
      expect(await run("ls -A | grep brig-stage || echo nothing else")).toBe("nothing else\n");
      await write("before");
    }
    expect((await place.run("rm", "one")).exitCode).toBe(0);
    await expectNothingLeft(place.home, [id]);
    expect(await readdir(join(place.home, "applies"))).toEqual([]);
  });

  it("clients and terminals cost only their own commands", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const id = await idOf(place);
    await place.run("exec", "--in", "one", "-d", "--", "sh", "-c", `(${counting}) > /tmp/counted`);
    const first = await place.terminal(["attach", "one"]);
    await first.waitFor(/[$#] $/);
    first.type("count=0\r");
    let terminal = first;
    const pids: string[] = [];
    for (let killed = 1; killed <= rounds; killed++) {
      const script = "trap '' TERM HUP INT; echo $$; while :; do echo more; sleep 0.01; done";
      const client = place.start(["exec", "--in", "one", "-i", "--", "sh", "-c", script], {
        holdsInputOpen: true,
      });
      pids.push((await firstOutput(client)).split("\n")[0] ?? "");
      terminal.type("count=$((count + 1)); echo counted-$count\r");
      await terminal.waitFor(new RegExp(`counted-${killed}\\b`));
      await someTime();
      client.kill("SIGKILL");
      await Promise.all([client, terminal[Symbol.asyncDispose]()]);
      terminal = await place.terminal(["attach", "one"]);
    }
    const left = `for pid in ${pids.join(" ")}; do [ ! -e /proc/$pid ] || echo $pid; done`;
    await expect
      .poll(async () => (await place.run("exec", "--in", "one", "--", "sh", "-c", left)).stdout, patience)
      .toBe("");
    await terminal[Symbol.asyncDispose]();
    await place.run("exec", "--in", "one", "--", "touch", "/tmp/enough");
    const counted = async () => (await place.run("exec", "--in", "one", "--", "cat", "/tmp/counted")).stdout;
    await expect.poll(counted, patience).toMatch(/^[0-9]+ in all$/m);
    expect(isWhole(await counted())).toBe(true);
    expect((await place.run("rm", "one")).exitCode).toBe(0);
    await expectNothingLeft(place.home, [id]);
  });

  it.each(["SIGKILL", "SIGTERM"] as const)(
    "brig serve --keep-sandboxes costs no process, and no byte of one (%s)",
    async (signal) => {
      const place = await keptPlace();
      const { client } = place;
      let service = await place.start(["--keep-sandboxes", "--warm", "1"]);
      const sandbox = await client.createSandbox({ workspaceKind: "overlay" });
      const plain = await client.createSandbox();
      const inside = await sandbox.exec(["cat", "/proc/sys/kernel/hostname"]);
      expect(inside.exitCode).toBe(0);
      const counts = await sandbox.spawn(["sh", "-c", counting]);
      const repeats = await plain.spawn(["cat"]);
      const texts = [collected(counts), collected(repeats)];
      const given = new Given();
      for (let killed = 0; killed < rounds; killed++) {
        // A request that the end of the service cuts may have been carried out: what it was about is not known then.
        await written(repeats, given.next());
        await someTime();
        await service.end(signal);
        await someTime();
        service = await place.start(["--keep-sandboxes", "--warm", "1"]);
        expect((await client.listSandboxes()).map(({ id }) => id).toSorted()).toEqual(
          [sandbox.id, plain.id].toSorted(),
        );
      }
      await sandbox.files.write("/tmp/enough", "");
      repeats.stdin?.end();
      const [counted, repeated] = await Promise.all(texts);
      expect(isWhole(`${counted}`)).toBe(true);
      expect(repeated === given.text).toBe(true);
      expect([(await counts.exit).exitCode, counts.lostBytes, repeats.lostBytes]).toEqual([7, 0, 0]);
      for (const one of await client.listSandboxes()) await one.delete();
      await service.end(signal);
      // What was kept started for clients goes with the next service that keeps nothing.
      await (await place.start(["--warm", "0"])).end("SIGTERM");
      expect(
        (await readdir(join(place.home, "serve", `127.0.0.1-${new URL(place.url).port}`))).filter((name) =>
          name.startsWith("sandbox-"),
        ),
      ).toEqual([]);
      await expectNothingLeft(place.home, []);
    },
  );
});

async function collected(process: RemoteProcess): Promise<string> {
  let text = "";
  for await (const piece of process.stdout) text += String(piece);
  return text;
}

async function written(process: RemoteProcess, text: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    process.stdin?.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
