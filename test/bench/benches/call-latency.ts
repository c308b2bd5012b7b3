import { type Bench, compare } from "../bench.js";
import { execInSandbox, execOverEngineApi, spawnOnHost } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const argv = ["true"];

/** What one short command costs: in the sandbox, over the Engine API in the same container, and on the host. */
export const callLatency: Bench = {
  name: "call-latency",
  async run({ isQuick, openSandbox, progress, signal }) {
    await using sandbox = await openSandbox();
    const callSandbox = () => execInSandbox(sandbox, argv);
    const callEngine = () => execOverEngineApi(sandbox, argv);
    const callHost = () => spawnOnHost("true");
    await repeat(200, callSandbox);
    await repeat(5, callEngine);
    await repeat(50, callHost);

    const rounds = isQuick ? 8 : 42;
    const { ours, engine, host } = await takeTurns(
      {
        ours: { name: "sandbox.exec", batch: 5, sample: () => timed(callSandbox) },
        engine: { name: "Engine API exec", batch: 5, sample: () => timed(callEngine) },
        host: { name: "child_process.spawn", batch: 5, sample: () => timed(callHost) },
      },
      { rounds, signal, onRound: (round) => progress(`short commands, round ${round} of ${rounds}`) },
    );
    return [
      compare(ours, engine, {
        title: "`true` in the same container",
        unit: "ms",
        direction: "rival / ours",
        target: { kind: "at-least", value: 20 },
      }),
      compare(ours, host, {
        title: "`true` against the bare host",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 1 },
      }),
    ];
  },
};
