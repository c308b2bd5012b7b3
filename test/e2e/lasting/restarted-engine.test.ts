import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { runs } from "../../support/fuzz.js";
import { endProcess, firstOutput, lastingPlace, upIn } from "../../support/lasting.js";
import { withReason } from "../../support/skip-reasons.js";

const run = promisify(execFile);

/** A directory with the socket of an engine, and a program that ends it with a signal and starts it again. Its containers go on meanwhile. */
const engine = process.env.BRIG_TEST_RESTARTED_ENGINE;
const why = engine === undefined ? "needs .ci/live-restore, whose engine may be restarted" : null;

/** How often the engine is restarted, at a moment that nobody has chosen. */
const rounds = runs({ short: 2, deep: 2 });
const timeout = 300_000 + rounds * 30_000;

const counting =
  "i=0; while [ ! -e /tmp/enough ]; do i=$((i+1)); echo line $i; sleep 0.005; done; echo $i in all; exit 7";

function expectWhole(text: string): void {
  const count = Number(/([0-9]+) in all\n$/.exec(text)?.[1]);
  expect(text).toBe(
    `${Array.from({ length: count }, (_, i) => `line ${i + 1}\n`).join("")}${count} in all\n`,
  );
}

describe.skipIf(why !== null)(
  withReason("a lasting sandbox whose engine is restarted", why),
  { timeout },
  () => {
    it.each([["bind"], ["overlay"]])(
      "goes on, and its commands lose no byte of input or output: --workspace %s",
      async (kind) => {
        const place = await lastingPlace({ variables: { DOCKER_HOST: `unix://${engine}/docker.sock` } });
        await upIn(place, "--name", "one", "--workspace", kind);
        const counts = place.start(["exec", "--in", "one", "--", "sh", "-c", counting]);
        const repeats = place.start(["exec", "--in", "one", "-i", "--", "cat"], { holdsInputOpen: true });
        const terminal = await place.terminal(["shell", "--in", "one"]);
        await terminal.waitFor(/[$#] $/);
        let given = "begun\n";
        repeats.stdin?.write(given);
        await Promise.all([firstOutput(counts), firstOutput(repeats)]);
        for (let round = 0; round < rounds; round++) {
          const signal = round % 2 === 0 ? "TERM" : "KILL";
          await sleep(Math.random() * 600);
          const restarting = run(`${engine}/restart`, [signal]);
          let isOver = false;
          void restarting.finally(() => {
            isOver = true;
          });
          for (let i = 0; !isOver || i < 200; i++) {
            const word = `word ${round} ${i} ${"x".repeat((i * 10) % 1000)}\n`;
            given += word;
            repeats.stdin?.write(word);
            await sleep(5);
          }
          await restarting;
          terminal.type(`echo after-$((${round} + 42))-restarts\r`);
          await terminal.waitFor(new RegExp(`after-${round + 42}-restarts`));
          const later = await place.run("exec", "--in", "one", "--", "echo", "later");
          expect([later.stdout, later.stderr]).toEqual(["later\n", ""]);
        }
        await place.run("exec", "--in", "one", "--", "touch", "/tmp/enough");
        repeats.stdin?.end();
        const repeated = await repeats;
        expect([repeated.exitCode, repeated.stderr]).toEqual([0, ""]);
        expect(repeated.stdout === given).toBe(true);
        const counted = await counts;
        expect([counted.exitCode, counted.stderr]).toEqual([7, ""]);
        expectWhole(counted.stdout);
        terminal.type("exit\r");
        await terminal.end();
        if (kind === "bind") return expect((await place.run("rm", "one")).exitCode).toBe(0);
        // Docker counts the mounts of volumes wrongly from then on, and removes them only after its next restart.
        expect((await place.run("rm", "--force", "one")).exitCode).toBe(0);
        await endProcess((await place.ownerPid()) ?? 0, "SIGTERM");
        await run(`${engine}/restart`, ["TERM"]);
        expect((await place.run("gc")).exitCode).toBe(0);
        for (const what of [
          ["ps", "--all"],
          ["volume", "ls"],
        ]) {
          const args = [...what, "--quiet", "--filter", "label=brig.session"];
          const { stdout } = await run("docker", ["--host", `unix://${engine}/docker.sock`, ...args]);
          expect(stdout).toBe("");
        }
      },
    );
  },
);
