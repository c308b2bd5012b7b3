import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { failures, isFull, printFigures, times } from "../../support/figures.js";
import { beginHostility, HOSTILE, HOSTILE_LIMITS, type Hostility } from "../../support/neighbours.js";
import type { BreakableSandbox } from "../../support/open-sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { sandboxTest } from "../../support/sandbox.js";

const VICTIMS = 4;
const callCount = isFull ? 200 : 40;

describe(`${VICTIMS} sandboxes beside hostile neighbours`, () => {
  sandboxTest(
    "lose no call, and get what they asked for",
    async ({ open, directory }) => {
      const victims = await Promise.all(Array.from({ length: VICTIMS }, () => open()));
      const alone = await callsOf(victims);
      const policyFile = await changedPolicy(directory, HOSTILE_LIMITS);
      const hostile = await Promise.all(
        (Object.keys(HOSTILE) as Hostility[]).map(async (name) => ({
          name,
          sandbox: await open({ policyFile }),
        })),
      );
      const ends = await Promise.all(hostile.map(({ name, sandbox }) => beginHostility(sandbox, name)));
      const beside = await callsOf(victims);
      for (const end of ends) await end();
      const wrong = [...alone, ...beside].filter(({ fault }) => fault !== null);
      printFigures("Hostile neighbours", [
        failures("calls of the others that failed", wrong.length, alone.length + beside.length),
        times(
          "`true` alone",
          alone.map(({ ms }) => ms),
        ),
        times(
          `\`true\` beside ${hostile.map(({ name }) => name).join(", ")}`,
          beside.map(({ ms }) => ms),
        ),
      ]);
      expect(wrong).toEqual([]);
      // Who was hostile has its limits, and its sandbox is as good as before.
      for (const { name, sandbox } of hostile) {
        const result = await sandbox.exec(["sh", "-c", "echo out; exit 3"]);
        expect(result, name).toMatchObject({ exitCode: 3, stdout: "out\n" });
      }
    },
    40 * 60_000,
  );
});

/** All victims at once, each a call after the other, each call a word that only it can answer. */
async function callsOf(victims: readonly BreakableSandbox[]): Promise<{ ms: number; fault: unknown }[]> {
  const each = victims.map(async (victim, index) => {
    const found = [];
    for (let call = 0; call < callCount; call++) found.push(await timedCall(victim, `${index}-${call}`));
    return found;
  });
  return (await Promise.all(each)).flat();
}

async function timedCall(victim: Sandbox, word: string): Promise<{ ms: number; fault: unknown }> {
  const startedAt = performance.now();
  await victim.exec(["true"]);
  const ms = performance.now() - startedAt;
  const result = await victim.exec(["sh", "-c", 'echo "$1"; exit 4', "sh", word]).catch((error) => error);
  const isRight = result.exitCode === 4 && result.stdout === `${word}\n` && result.stderr === "";
  return { ms, fault: isRight ? null : result };
}
