import type { Samples } from "./bench.js";

/** One of the sides that are measured in turns. */
export interface Contender {
  name: string;
  /** Takes one sample. What it does after reading the clock is not part of it. */
  sample(): Promise<number>;
  /** Samples taken in a row before the next side's turn. */
  batch: number;
}

export interface TurnOptions {
  rounds: number;
  signal: AbortSignal;
  /** Told before each round, counted from 1. */
  onRound?: (round: number) => void;
}

/**
 * Samples all sides in small batches, in turns, so that whatever slows the machine hits each of them. The order changes
 * from round to round so that each side follows each other one about equally often: some leave work behind for the next.
 */
export async function takeTurns<Name extends string>(
  contenders: Record<Name, Contender>,
  { rounds, signal, onRound }: TurnOptions,
): Promise<Record<Name, Samples>> {
  const names = Object.keys(contenders) as Name[];
  const taken = new Map(names.map((name) => [name, [] as number[][]]));
  for (let round = 0; round < rounds; round++) {
    onRound?.(round + 1);
    for (const name of orderOf(names, round)) {
      taken.get(name)?.push(await takeBatch(contenders[name], signal));
    }
  }
  const samples = names.map((name) => [name, { name: contenders[name].name, rounds: taken.get(name) }]);
  return Object.fromEntries(samples) as Record<Name, Samples>;
}

/** Two rounds forwards, two backwards, and then the same begun one side later. */
function orderOf<Name>(names: readonly Name[], round: number): Name[] {
  const start = Math.floor(round / 4) % names.length;
  const order = [...names.slice(start), ...names.slice(0, start)];
  return round % 4 < 2 ? order : order.reverse();
}

async function takeBatch({ sample, batch }: Contender, signal: AbortSignal): Promise<number[]> {
  const samples: number[] = [];
  while (samples.length < batch) {
    signal.throwIfAborted();
    samples.push(await sample());
  }
  return samples;
}

/** How long `work` takes, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** One call after the other; also for warming up what is measured. */
export async function repeat(times: number, call: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < times; count++) await call();
}
