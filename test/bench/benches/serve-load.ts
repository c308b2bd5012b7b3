import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Bench, compare, quantity } from "../bench.js";
import type { LoadOrder, LoadSide } from "../load-process.js";
import { takeTurns } from "../sampling.js";
import { startService } from "../service-process.js";

const CLIENTS = 500;
const MOST_GROWN_MB = 5;

/**
 * Many clients of `brig serve` at once, beside as many callers of the library, each side in a process that does nothing else; and what
 * the service holds after many calls that it did not hold before.
 */
export const serveLoad: Bench = {
  name: "serve-load",
  async run(context) {
    const { isQuick, runtime, progress, signal } = context;
    const flags = ["--warm", "0", "--max-buffered", "2GiB"];
    await using service = await startService(flags, context);
    await using ours = await LoadProcess.start({ kind: "service", ...service.address }, signal);
    await using library = await LoadProcess.start({ kind: "library", runtime }, signal);
    const order = { callers: CLIENTS, calls: isQuick ? 1000 : 5000 };
    for (const side of [ours, library]) await side.run(order);
    const rounds = isQuick ? 3 : 12;
    const callsASecond = async (side: LoadProcess) => (order.calls / (await side.run(order))) * 1000;
    const found = await takeTurns(
      {
        ours: { name: `${CLIENTS} clients of brig serve`, batch: 1, sample: () => callsASecond(ours) },
        rival: { name: `${CLIENTS} callers of sandbox.exec`, batch: 1, sample: () => callsASecond(library) },
      },
      { rounds, signal, onRound: (round) => progress(`${CLIENTS} clients, round ${round} of ${rounds}`) },
    );
    const calls = isQuick ? 3000 : 100_000;
    progress(`${calls} calls over brig serve`);
    const before = await service.heldBytes();
    await ours.run({ callers: 32, calls });
    const grown = ((await service.heldBytes()) - before) / 1e6;
    return [
      compare(found.ours, found.rival, {
        title: `commands of ${CLIENTS} clients at once`,
        unit: "calls/s",
        direction: "ours / rival",
        target: { kind: "at-least", value: 0.8 },
      }),
      quantity(
        { name: "brig serve", values: [grown] },
        {
          title: `held after ${calls} calls more than before`,
          unit: "MB",
          judged: "max",
          target: { kind: "at-most", value: MOST_GROWN_MB },
        },
      ),
    ];
  },
};

/** A process that does nothing but run commands on one side. */
class LoadProcess implements AsyncDisposable {
  readonly #child: ReturnType<typeof fork>;

  private constructor(child: ReturnType<typeof fork>) {
    this.#child = child;
  }

  static async start(side: LoadSide, signal: AbortSignal): Promise<LoadProcess> {
    const program = fileURLToPath(new URL("../load-process.js", import.meta.url));
    const child = fork(program, { signal, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    child.send(side);
    const load = new LoadProcess(child);
    await load.#reply();
    return load;
  }

  /** The milliseconds that all of it took. */
  async run(order: LoadOrder): Promise<number> {
    this.#child.send(order);
    return (await this.#reply()) as number;
  }

  async #reply(): Promise<unknown> {
    const over = new AbortController();
    try {
      const early = once(this.#child, "exit", { signal: over.signal }).then(([code]) => {
        throw new Error(`the process of the callers ended with ${code}`);
      });
      const [reply] = await Promise.race([once(this.#child, "message", { signal: over.signal }), early]);
      return reply;
    } finally {
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    if (this.#child.connected) this.#child.disconnect();
    await exited;
  }
}
