import { type Bench, quantity } from "../bench.js";
import type { EgressMeasures, EgressOrder } from "../egress-process.js";
import { measureInOwnProcess } from "../own-process.js";

const allowList = "allow-list";

/** What programs in a sandbox with an allow-list reach outside, against a server beside them. */
export const egress: Bench = {
  name: "egress",
  async run({ isQuick, workspace, runtime, signal, progress }) {
    progress("requests, transfers and a thousand connections through an allow-list");
    const order: EgressOrder = isQuick
      ? { requests: 200, bulkRounds: 3, connectionRounds: 3 }
      : { requests: 1000, bulkRounds: 12, connectionRounds: 10 };
    const measured = (await measureInOwnProcess(
      "./egress-process.js",
      { order, workspace, runtime },
      signal,
    )) as EgressMeasures;
    const direct = median(measured.inside);
    const over = (title: string, values: readonly number[], mostMs = 1) =>
      quantity(
        { name: allowList, values: values.map((ms) => ms - direct) },
        { title, unit: "ms", judged: "median", target: { kind: "at-most", value: mostMs } },
      );
    const speed = (title: string, values: readonly number[]) =>
      quantity(
        { name: allowList, values },
        { title, unit: "MB/s", judged: "median", target: { kind: "at-least", value: 200 } },
      );
    const [first, ...later] = measured.connections;
    return [
      over("a request in a tunnel, over one inside", measured.tunnel),
      over("a request of plain HTTP, over one inside", measured.http),
      over("a request in TLS that ends at the proxy, over one inside", measured.tls, 3),
      quantity(
        { name: allowList, values: measured.newTls.map((ms) => ms - direct) },
        { title: "a request in new such TLS, over one inside", unit: "ms" },
      ),
      quantity(
        { name: allowList, values: measured.newTunnel.map((ms) => ms - direct) },
        { title: "a request in a new tunnel, over one inside", unit: "ms" },
      ),
      speed("64 MB through a tunnel", measured.bulk.tunnel),
      speed("64 MB of plain HTTP", measured.bulk.http),
      quantity(
        { name: "loopback in the sandbox", values: measured.bulk.inside },
        { title: "… and between two programs inside", unit: "MB/s" },
      ),
      quantity(
        { name: allowList, values: measured.connections.map(({ openMs }) => openMs) },
        { title: `1000 connections open at once, and used`, unit: "ms" },
      ),
      quantity(
        { name: allowList, values: measured.connections.map(({ grownMb }) => grownMb) },
        { title: "… and the memory of brig with them", unit: "MB", judged: "max" },
      ),
      quantity(
        { name: allowList, values: later.map(({ grownMb }) => grownMb - (first?.grownMb ?? 0)) },
        {
          title: "… and in later rounds over the first",
          unit: "MB",
          judged: "median",
          target: { kind: "at-most", value: 25 },
        },
      ),
    ];
  },
};

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
