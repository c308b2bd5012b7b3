import { randomBytes } from "node:crypto";
import { Sandbox } from "brigbox";
import { type Bench, compare, quantity } from "../bench.js";
import { outputOf, spawnOnHost } from "../rivals.js";
import { repeat, takeTurns, timed } from "../sampling.js";
import { brig } from "../service-process.js";
import { quantileOf } from "../statistics.js";

/**
 * A sandbox of `brig up`: a command in it as a whole process, beside `docker exec`; and a call through its owner, beside one of the process
 * that has opened its sandbox itself.
 */
export const lasting: Bench = {
  name: "lasting",
  async run({ isQuick, openSandbox, progress, runtime, signal, workspace }) {
    await using own = await openSandbox();
    const onRuntime = runtime === undefined ? [] : ["--runtime", runtime];
    const name = `bench-${randomBytes(4).toString("hex")}`;
    const host = ["--host", own.engine.endpoint];
    const run = ["run", "-d", "--rm", "--network", "none", ...onRuntime, own.image, "sleep", "infinity"];
    const container = (await outputOf("docker", [...host, ...run])).trim();
    await spawnOnHost(process.execPath, [brig, "up", "--name", name, "-C", workspace, ...onRuntime]);
    try {
      const ours = () => spawnOnHost(process.execPath, [brig, "exec", "--in", name, "--", "true"]);
      const rival = () => spawnOnHost("docker", [...host, "exec", container, "true"]);
      for (const side of [ours, rival]) await repeat(3, side);
      const rounds = isQuick ? 5 : 60;
      const whole = await takeTurns(
        {
          ours: { name: "brig exec --in NAME -- true", batch: 1, sample: () => timed(ours) },
          rival: { name: "docker exec CONTAINER true", batch: 1, sample: () => timed(rival) },
        },
        { rounds, signal, onRound: (round) => progress(`exec --in, round ${round} of ${rounds}`) },
      );
      const connected = await Sandbox.connect(name);
      const commandIn = (sandbox: { exec(argv: string[]): Promise<unknown> }) => async () =>
        await timed(() => sandbox.exec(["true"]));
      await repeat(200, commandIn(connected));
      await repeat(200, commandIn(own));
      const calls = await takeTurns(
        {
          ours: { name: "Sandbox.connect", batch: 20, sample: commandIn(connected) },
          own: { name: "Sandbox.create", batch: 20, sample: commandIn(own) },
        },
        {
          rounds,
          signal,
          onRound: (round) => progress(`calls through the owner, round ${round} of ${rounds}`),
        },
      );
      await connected.close();
      const median = (of: keyof typeof calls) => quantileOf(calls[of].rounds.flat(), 0.5);
      const unit = "ms";
      return [
        compare(whole.ours, whole.rival, {
          title: "a command in a lasting sandbox, whole process against whole process",
          unit,
          direction: "ours / rival",
          target: { kind: "at-most", value: 0.6 },
        }),
        quantity(
          { name: "Sandbox.connect", values: calls.ours.rounds.flat() },
          { title: "a call through the owner", unit },
        ),
        quantity(
          { name: "difference", values: [median("ours") - median("own")] },
          { title: "… above one in the own process", unit, target: { kind: "at-most", value: 2 } },
        ),
      ];
    } finally {
      await spawnOnHost(process.execPath, [brig, "rm", name]);
      await spawnOnHost("docker", [...host, "rm", "-f", container]);
    }
  },
};
