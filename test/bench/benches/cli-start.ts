import { fileURLToPath } from "node:url";
import { type Bench, compare } from "../bench.js";
import { spawnOnHost } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

/** What the command line costs before it does anything. */
export const cliStart: Bench = {
  name: "cli-start",
  async run({ isQuick, progress, signal }) {
    const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));
    const help = () => spawnOnHost(process.execPath, [brig, "--help"]);
    const nothing = () => spawnOnHost(process.execPath, ["-e", "0"]);
    await repeat(3, help);
    await repeat(3, nothing);

    const rounds = isQuick ? 5 : 25;
    const { ours, bare } = await takeTurns(
      {
        ours: { name: "brig --help", batch: 2, sample: () => timed(help) },
        bare: { name: "node -e 0", batch: 2, sample: () => timed(nothing) },
      },
      { rounds, signal, onRound: (round) => progress(`brig --help, round ${round} of ${rounds}`) },
    );
    return [
      compare(ours, bare, {
        title: "start of the command line",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 2.5 },
      }),
    ];
  },
};
