import { quantileOf } from "../bench/statistics.js";

/** Whether to measure as much as the figures that brig states ask for. Otherwise a part of it, which is enough to see a change. */
export const isFull = process.env.BRIG_TEST_FIGURES === "full";

/** Of what is random in a test: the one that failed, for example. */
export const figuresSeed = Number(process.env.BRIG_TEST_SEED ?? Date.now() % 1_000_000);

/** Prints the figures of one test, below its title. */
export function printFigures(title: string, lines: readonly string[]): void {
  process.stdout.write(`${[title, ...lines.map((line) => `  ${line}`)].join("\n")}\n`);
}

export function times(name: string, samplesMs: readonly number[]): string {
  const at = (fraction: number) => `${quantileOf(samplesMs, fraction).toFixed(1)} ms`;
  return `${name}: median ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)} (${samplesMs.length})`;
}

/**
 * How many of so many went wrong. None of n is no proof that none ever will: at 95 % it says that fewer than 3 in n do, which is
 * therefore printed as well.
 */
export function failures(name: string, count: number, of: number): string {
  const bound = count === 0 ? `, at 95 % fewer than ${((3 / of) * 100).toPrecision(2)} %` : "";
  return `${name}: ${count} of ${of}${bound}`;
}

/** What one unit more of `xs` adds to `ys`, by least squares. */
export function slope(xs: readonly number[], ys: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x, y] = [mean(xs), mean(ys)];
  const spread = xs.reduce((sum, value) => sum + (value - x) ** 2, 0);
  return xs.reduce((sum, value, index) => sum + (value - x) * ((ys[index] ?? y) - y), 0) / spread;
}
