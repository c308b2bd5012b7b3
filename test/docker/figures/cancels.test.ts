import { json } from "node:stream/consumers";
import { describe, expect } from "vitest";
import type { ExecResult } from "../../../src/sandbox/sandbox-types.js";
import { promised } from "../../guarantees.js";
import { ADVERSARIES, type Adversary, adversary } from "../../support/adversaries.js";
import { call, socketOf } from "../../support/engine.js";
import { failures, figuresSeed, isFull, printFigures, times } from "../../support/figures.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { runningCommands, zombieCount } from "../../support/processes.js";
import { randomNumbers } from "../../support/random.js";
import { sandboxTest } from "../../support/sandbox.js";

const cancelCount = isFull ? 1000 : 136;
/** Cancels at the same time, each in a sandbox of its own: what is left there after one is left by that one. */
const SANDBOXES = 4;
const LATEST_MS = 300;

interface Cancel {
  name: Adversary;
  afterMs: number;
  /** From when that counts: its first word, when it is as hard to end as it can be, or the call, before which it may not have begun. */
  since: "word" | "call";
  /** After how long it ends if it is one that does: about then, since it takes a moment to start. */
  diesAfterMs: number;
  /** More than a pipe takes, so that some of it is still on its way. Nobody reads it. */
  hasStdin: boolean;
}

interface Outcome extends Cancel {
  /** From the cancel until nothing was left, as the sandbox says; null when the command had ended before. */
  confirmedMs: number | null;
  /** What was there nevertheless. */
  left: string[];
}

describe(`${cancelCount} cancels of commands that do what they can to stay (seed ${figuresSeed})`, () => {
  sandboxTest(
    promised("kept.kill", "leave no process"),
    async ({ open, directory }) => {
      const policyFile = await changedPolicy(directory, { pids: 128 });
      const sandboxes = await Promise.all(Array.from({ length: SANDBOXES }, () => open({ policyFile })));
      const queue = cancels(cancelCount, randomNumbers(figuresSeed)).values();
      const outcomes: Outcome[] = [];
      await Promise.all(
        sandboxes.map(async (sandbox) => {
          for (const one of queue) outcomes.push(await cancelled(sandbox, one));
        }),
      );
      const left = outcomes.filter((one) => one.left.length > 0);
      const confirmed = outcomes.flatMap(({ confirmedMs }) => confirmedMs ?? []);
      printFigures(`Adversarial cancels (seed ${figuresSeed})`, [
        failures("with something left", left.length, outcomes.length),
        `ended by themselves before: ${outcomes.length - confirmed.length}`,
        times("from the cancel to the word that nothing is left, of which 500 ms are the grace", confirmed),
        `the slowest: ${slowest(outcomes)}`,
      ]);
      expect(left).toEqual([]);
      expect(outcomes).toHaveLength(cancelCount);
      for (const sandbox of sandboxes) {
        await expect.poll(() => zombieCount(sandbox)).toBe(0);
        expect(await seenFromOutside(sandbox)).toEqual([]);
      }
    },
    40 * 60_000,
  );
});

/** Every adversary equally often. */
function cancels(count: number, random: () => number): Cancel[] {
  return Array.from({ length: count }, (_, index) => {
    const afterMs = Math.floor(random() * LATEST_MS);
    const diesAfterMs = Math.max(0, afterMs - Math.floor(random() * 120));
    const name = ADVERSARIES[index % ADVERSARIES.length] as Adversary;
    const since = random() < 0.6 ? "word" : "call";
    return { name, afterMs, since, diesAfterMs, hasStdin: random() < 0.3 };
  });
}

async function cancelled(sandbox: BreakableSandbox, cancel: Cancel): Promise<Outcome> {
  const { name, afterMs, since, diesAfterMs, hasStdin } = cancel;
  const controller = new AbortController();
  const reason = new Error("cancelled");
  let abortedAt = Number.NaN;
  let timer: NodeJS.Timeout | undefined;
  const begin = () => {
    timer ??= setTimeout(() => {
      abortedAt = performance.now();
      controller.abort(reason);
    }, afterMs);
  };
  if (since === "call") begin();
  const ended = await sandbox
    .exec(adversary(name, diesAfterMs), {
      signal: controller.signal,
      onStdout: begin,
      endsTree: true,
      maxOutputBytes: 4096,
      ...(hasStdin ? { stdin: Buffer.alloc(300_000) } : {}),
    })
    .catch((error: unknown) => error);
  const confirmedMs = ended === reason ? performance.now() - abortedAt : null;
  clearTimeout(timer);
  if (confirmedMs === null) requireEnd(cancel, ended);
  return { ...cancel, confirmedMs, left: await othersIn(sandbox) };
}

function slowest(outcomes: readonly Outcome[]): string {
  const late = outcomes.toSorted((one, other) => (other.confirmedMs ?? 0) - (one.confirmedMs ?? 0));
  const shown = late.slice(0, 8).map(({ name, confirmedMs }) => `${name} ${confirmedMs?.toFixed(0)} ms`);
  return shown.join(", ");
}

/** Only these may be over before they are cancelled. */
function requireEnd({ name }: Cancel, ended: unknown): void {
  const signal = (ended as ExecResult).signal;
  if (name === "dies") expect(ended).toMatchObject({ exitCode: 0, signal: null });
  else if (name === "ends_keeper") expect(signal).toBe("SIGKILL");
  else throw new Error(`${name} ended before it was cancelled`, { cause: ended });
}

async function othersIn(sandbox: BreakableSandbox): Promise<string[]> {
  // What kills the bridge too makes the host open another, and the engine's own process is seen for a moment.
  return (await runningCommands(sandbox)).filter((name) => name !== "runc init");
}

/** The processes of the container that are not the runner's, as the engine lists them: nothing inside has a say in that. */
async function seenFromOutside({ engine, containerId }: BreakableSandbox): Promise<string[]> {
  const path = `/containers/${containerId}/top?ps_args=-eo%20pid,stat,args`;
  const { Processes } = (await json(await call(socketOf(engine), { method: "GET", path }))) as {
    Processes: string[][];
  };
  const others = Processes.filter(([, , command]) => !/(^|\/)runner(?:-files)?( |$)/.test(command ?? ""));
  return others.map((columns) => columns.join(" "));
}
