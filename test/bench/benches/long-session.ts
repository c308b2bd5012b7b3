import { mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { type Bench, type BenchContext, compare, quantity } from "../bench.js";
import type { LongSessionMeasures, LongSessionOrder } from "../long-session-process.js";
import { ModelEndpoint } from "../model-endpoint.js";
import { measureInOwnProcess } from "../own-process.js";

const EARLY = 5;
const LATE = 200;
/** Turns on either side that count as the same age. */
const SPREAD = 2;

/** A conversation of 200 turns with a call each: what is slower, and what is larger, than at its beginning. */
export const longSession: Bench = {
  name: "long-session",
  async run(context) {
    const sessions: LongSessionMeasures[] = [];
    const rounds = context.isQuick ? 1 : 6;
    const endpoint = new ModelEndpoint();
    try {
      const url = await endpoint.listen();
      for (let round = 1; round <= rounds; round++) {
        context.progress(`a session of ${LATE} turns, round ${round} of ${rounds}`);
        endpoint.expect(1, LATE + SPREAD);
        sessions.push(await runSession(context, url));
        endpoint.visit();
      }
    } finally {
      endpoint.close();
    }
    const turnsAt = (age: number) => ({
      name: `turn ${age}`,
      rounds: sessions.map(({ turnsMs }) => turnsMs.slice(age - 1 - SPREAD, age + SPREAD)),
    });
    return [
      compare(turnsAt(LATE), turnsAt(EARLY), {
        title: "a turn late in a long session",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 1.5 },
      }),
      quantity(
        { name: `${LATE} turns`, values: sessions.map(({ memoryMb }) => memoryMb) },
        {
          title: "memory of a long session",
          unit: "MB",
          judged: "max",
          target: { kind: "at-most", value: 200 },
        },
      ),
    ];
  },
};

async function runSession(
  { workspace, runtime, signal }: BenchContext,
  url: string,
): Promise<LongSessionMeasures> {
  const home = await mkdtemp(join(workspace, "home-"));
  const order: LongSessionOrder = { url, home, workspace, runtime, turns: LATE + SPREAD };
  return (await measureInOwnProcess("./long-session-process.js", order, signal)) as LongSessionMeasures;
}
