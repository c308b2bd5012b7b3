import { fileURLToPath } from "node:url";
import { type Bench, compare } from "../bench.js";
import { outputOf, spawnOnHost } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";

/** What somebody sees who compares the two programs: from the start of the process to its end, the container removed. */
export const oneCommand: Bench = {
  name: "one-command",
  async run({ isQuick, openSandbox, progress, runtime, signal, workspace }) {
    const { engine, image } = await hostOf(openSandbox);
    const onRuntime = runtime === undefined ? [] : ["--runtime", runtime];
    const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));
    const ours = () =>
      spawnOnHost(process.execPath, [brig, "exec", "-C", workspace, ...onRuntime, "--", "true"]);
    const docker = ["--host", engine, "run", "--rm", "--network", "none", ...onRuntime, image, "true"];
    const rival = () => outputOf("docker", docker).then(() => undefined);
    await repeat(2, ours);
    await repeat(2, rival);

    const rounds = isQuick ? 5 : 24;
    const found = await takeTurns(
      {
        ours: { name: "brig exec -- true", batch: 1, sample: () => timed(ours) },
        rival: { name: "docker run --rm --network none IMAGE true", batch: 1, sample: () => timed(rival) },
      },
      { rounds, signal, onRound: (round) => progress(`whole processes, round ${round} of ${rounds}`) },
    );
    return [
      compare(found.ours, found.rival, {
        title: "one command, whole process against whole process",
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 1.4 },
      }),
    ];
  },
};

/** The engine and the image that both sides use. */
async function hostOf(
  openSandbox: Parameters<Bench["run"]>[0]["openSandbox"],
): Promise<{ engine: string; image: string }> {
  await using sandbox = await openSandbox();
  return { engine: sandbox.engine.endpoint, image: sandbox.image };
}
