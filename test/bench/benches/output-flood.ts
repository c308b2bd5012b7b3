import { type Bench, type BenchContext, compare, quantity, type Row } from "../bench.js";
import type { FloodMeasures, FloodOrder } from "../flood-process.js";
import { measureInOwnProcess } from "../own-process.js";

const memoryTarget = { kind: "at-most", value: 32 } as const;

/** A gigabyte of stdout from one command: memory, throughput, and what a second command notices of it. */
export const outputFlood: Bench = {
  name: "output-flood",
  async run(context) {
    return [...(await throughput(context)), await memoryWhileListening(context), await latency(context)];
  },
};

async function throughput(context: BenchContext): Promise<Row[]> {
  const rounds = context.isQuick ? 2 : 8;
  const { ours, engine, relayed, growth } = await measure(context, { kind: "throughput", rounds });
  return [
    compare(
      { name: "sandbox.exec", rounds: ours },
      { name: "Engine API exec", rounds: engine },
      { title: "1 GB of stdout", unit: "MB/s", direction: "ours / rival" },
    ),
    compare(
      { name: "sandbox.exec", rounds: ours },
      { name: "Engine API exec, through cat", rounds: relayed },
      { title: "1 GB of stdout, as the least relay passes it on", unit: "MB/s", direction: "ours / rival" },
    ),
    quantity(
      { name: "sandbox.exec", values: growth },
      { title: "host memory during 1 GB", unit: "MB", judged: "max", target: memoryTarget },
    ),
  ];
}

async function memoryWhileListening(context: BenchContext): Promise<Row> {
  const rounds = context.isQuick ? 1 : 4;
  const { growth } = await measure(context, { kind: "listening", rounds });
  return quantity(
    { name: "sandbox.exec with onStdout", values: growth },
    { title: "… with a listener", unit: "MB", judged: "max", target: memoryTarget },
  );
}

async function latency(context: BenchContext): Promise<Row> {
  const rounds = context.isQuick ? 2 : 6;
  const { idle, flooded } = await measure(context, { kind: "latency", rounds });
  return compare(
    { name: "during the flood", rounds: flooded },
    { name: "idle", rounds: idle },
    {
      title: "a second command during 1 GB",
      unit: "ms",
      direction: "ours / rival",
      target: { kind: "at-most", value: 5 },
    },
  );
}

async function measure<Kind extends FloodOrder["kind"]>(
  { workspace, runtime, signal, progress }: BenchContext,
  order: Extract<FloodOrder, { kind: Kind }>,
): Promise<FloodMeasures[Kind]> {
  progress(`a gigabyte of output: ${order.kind}`);
  const measures = await measureInOwnProcess("./flood-process.js", { order, workspace, runtime }, signal);
  return measures as FloodMeasures[Kind];
}
