import type { Sandbox } from "brigbox";
import { type Bench, type BenchContext, compare } from "../bench.js";
import { execInSandbox, execOverEngineApi } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const sandboxCount = 8;
const argv = ["true"];

/** Short commands in eight sandboxes at once. A sample is the rate over one batch of calls. */
export const parallelCalls: Bench = {
  name: "parallel-calls",
  async run(context) {
    const { isQuick, progress, signal } = context;
    const sandboxes = await openAll(context);
    try {
      const inSandboxes = (calls: number) => rate(sandboxes, { calls, call: execInSandbox });
      const overEngine = (calls: number) => rate(sandboxes, { calls, call: execOverEngineApi });
      await repeat(1, () => inSandboxes(30));
      await repeat(1, () => overEngine(1));

      const rounds = isQuick ? 2 : 8;
      const { ours, engine } = await takeTurns(
        {
          ours: { name: "sandbox.exec", batch: 1, sample: () => inSandboxes(50) },
          engine: { name: "Engine API exec", batch: 1, sample: () => overEngine(4) },
        },
        { rounds, signal, onRound: (round) => progress(`calls in parallel, round ${round} of ${rounds}`) },
      );
      return [
        compare(ours, engine, {
          title: `\`true\` in ${sandboxCount} sandboxes at once`,
          unit: "calls/s",
          direction: "ours / rival",
          target: { kind: "at-least", value: 15 },
        }),
      ];
    } finally {
      await Promise.all(sandboxes.map((sandbox) => sandbox.close()));
    }
  },
};

/** All or none. */
async function openAll({ openSandbox, progress }: BenchContext): Promise<Sandbox[]> {
  progress(`opening ${sandboxCount} sandboxes`);
  const opening = await Promise.allSettled(Array.from({ length: sandboxCount }, () => openSandbox()));
  const open = opening.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const failure = opening.find((one) => one.status === "rejected");
  if (failure === undefined) return open;
  await Promise.all(open.map((sandbox) => sandbox.close()));
  throw failure.reason;
}

/** Calls per second when every sandbox makes this many, one after the other. */
async function rate(
  sandboxes: Sandbox[],
  { calls, call }: { calls: number; call: (sandbox: Sandbox, argv: string[]) => Promise<unknown> },
): Promise<number> {
  const takenMs = await timed(() =>
    Promise.all(sandboxes.map((sandbox) => repeat(calls, () => call(sandbox, argv)))),
  );
  return (sandboxes.length * calls * 1000) / takenMs;
}
