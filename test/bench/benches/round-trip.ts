import { type Bench, quantity } from "../bench.js";
import { repeat, timed } from "../sampling.js";

/** The floor under every call: one byte to the runner and back. */
export const roundTrip: Bench = {
  name: "round-trip",
  async run({ isQuick, openSandbox, progress }) {
    await using sandbox = await openSandbox();
    progress("echoing one byte");
    await repeat(100, () => sandbox.ping());
    const values: number[] = [];
    while (values.length < (isQuick ? 200 : 1000)) values.push(await timed(() => sandbox.ping()));
    return [
      quantity({ name: "sandbox.ping", values }, { title: "one byte to the runner and back", unit: "ms" }),
    ];
  },
};
