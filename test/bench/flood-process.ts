import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { Sandbox } from "brigbox";
import { execInSandbox, execOverEngineApi } from "./rivals.js";
import { repeat, takeTurns, timed } from "./sampling.js";

/** What the parent wants to know; one order for each process. */
export type FloodOrder =
  | { kind: "throughput"; rounds: number }
  | { kind: "listening"; rounds: number }
  | { kind: "latency"; rounds: number };

export interface FloodMeasures {
  /** MB/s of each side in each round, and MB the process grew by in each of ours. */
  throughput: { ours: number[][]; engine: number[][]; relayed: number[][]; growth: number[] };
  listening: { growth: number[] };
  /** Milliseconds of short commands before and during each flood. */
  latency: { idle: number[][]; flooded: number[][] };
}

interface Message {
  order: FloodOrder;
  workspace: string;
  runtime: string | undefined;
}

const floodBytes = 1_000_000_000;
const flood = ["head", "-c", String(floodBytes), "/dev/zero"];
/** The least that a program between a command and its stream can do: it copies, and neither numbers nor keeps anything. */
const relayedFlood = ["sh", "-c", `${flood.join(" ")} | cat`];
const memorySampleMs = 20;
/** By then the flood's first bytes have long arrived. */
const underWayMs = 100;
const idleCalls = 100;

const [message] = (await once(process, "message")) as [Message];
const { workspace, runtime, order } = message;
{
  await using sandbox = await Sandbox.create({ workspace, runtime });
  await repeat(200, () => execInSandbox(sandbox, ["true"]));
  process.send?.(await follow(order, sandbox));
}
process.disconnect();

async function follow(order: FloodOrder, sandbox: Sandbox): Promise<FloodMeasures[FloodOrder["kind"]]> {
  switch (order.kind) {
    case "throughput":
      return await measureThroughput(sandbox, order.rounds);
    case "listening":
      return await measureListening(sandbox, order.rounds);
    case "latency":
      return await measureLatency(sandbox, order.rounds);
  }
}

async function measureThroughput(sandbox: Sandbox, rounds: number): Promise<FloodMeasures["throughput"]> {
  const growth: number[] = [];
  const inSandbox = async () => {
    const memory = watchMemory();
    const takenMs = await timed(() => execInSandbox(sandbox, flood));
    growth.push(memory.grownBy());
    return megabytesPerSecond(takenMs);
  };
  const overEngine = (argv: string[]) => async () => {
    const takenMs = await timed(() => execOverEngineApi(sandbox, argv));
    return megabytesPerSecond(takenMs);
  };
  const { ours, engine, relayed } = await takeTurns(
    {
      ours: { name: "sandbox.exec", batch: 1, sample: inSandbox },
      engine: { name: "Engine API exec", batch: 1, sample: overEngine(flood) },
      relayed: { name: "Engine API exec, through cat", batch: 1, sample: overEngine(relayedFlood) },
    },
    { rounds, signal: new AbortController().signal },
  );
  return {
    ours: [...ours.rounds] as number[][],
    engine: [...engine.rounds] as number[][],
    relayed: [...relayed.rounds] as number[][],
    growth,
  };
}

async function measureListening(sandbox: Sandbox, rounds: number): Promise<FloodMeasures["listening"]> {
  const growth: number[] = [];
  await repeat(rounds, async () => {
    let bytes = 0;
    const memory = watchMemory();
    const onStdout = (chunk: Uint8Array) => {
      bytes += chunk.length;
    };
    await sandbox.exec(flood, { onStdout });
    growth.push(memory.grownBy());
    if (bytes !== floodBytes) throw new Error(`${bytes} bytes arrived of ${floodBytes}`);
  });
  return { growth };
}

async function measureLatency(sandbox: Sandbox, rounds: number): Promise<FloodMeasures["latency"]> {
  const call = () => timed(() => execInSandbox(sandbox, ["true"]));
  const idle: number[][] = [];
  const flooded: number[][] = [];
  await repeat(rounds, async () => {
    const before: number[] = [];
    while (before.length < idleCalls) before.push(await call());
    idle.push(before);
    flooded.push(await callsDuring(execInSandbox(sandbox, flood), call));
  });
  return { idle, flooded };
}

/** Only calls that were over before the flood was. */
async function callsDuring(flooding: Promise<void>, call: () => Promise<number>): Promise<number[]> {
  let isOver = false;
  const end = flooding.finally(() => {
    isOver = true;
  });
  const samples: number[] = [];
  await Promise.race([sleep(underWayMs), end]);
  while (!isOver) {
    const takenMs = await call();
    if (!isOver) samples.push(takenMs);
  }
  await end;
  return samples;
}

/** Megabytes by which this process's resident memory has at most been above its present value. */
function watchMemory(): { grownBy(): number } {
  const before = process.memoryUsage.rss();
  let peak = before;
  const look = () => {
    peak = Math.max(peak, process.memoryUsage.rss());
  };
  const timer = setInterval(look, memorySampleMs);
  return {
    grownBy() {
      clearInterval(timer);
      look();
      return (peak - before) / 1e6;
    },
  };
}

function megabytesPerSecond(takenMs: number): number {
  return floodBytes / 1000 / takenMs;
}
