/** What a set of samples looks like. Quantiles are interpolated linearly between neighbours. */
export interface Summary {
  count: number;
  min: number;
  p10: number;
  median: number;
  p90: number;
  p95: number;
  max: number;
}

/** A ratio of two quantiles with the interval in which it would fall if the run were repeated. */
export interface Ratio {
  value: number;
  low: number;
  high: number;
  /** How sure the interval is, e.g. 0.95. */
  confidence: number;
}

/** The samples of both sides that were taken right after one another. */
export interface Round {
  numerator: readonly number[];
  denominator: readonly number[];
}

export interface BootstrapOptions {
  /** Which quantile of each side: 0.95 for what all but the slowest twentieth stay below. Default 0.5, the medians. */
  fraction?: number | undefined;
  /** Default 1000. */
  resamples?: number | undefined;
  /** Default 0.95. */
  confidence?: number | undefined;
  /** Numbers from 0 up to 1. Default: a fixed sequence, so that the same samples give the same interval. */
  random?: (() => number) | undefined;
}

export function summarize(samples: readonly number[]): Summary {
  const sorted = ascending(samples);
  return {
    count: sorted.length,
    min: quantile(sorted, 0),
    p10: quantile(sorted, 0.1),
    median: quantile(sorted, 0.5),
    p90: quantile(sorted, 0.9),
    p95: quantile(sorted, 0.95),
    max: quantile(sorted, 1),
  };
}

/**
 * The ratio of the medians, or of another quantile, over all rounds. Its interval is a bootstrap that draws whole rounds, both sides of each
 * together: a machine that is slow for a while slows both, and that must not widen the interval.
 */
export function ratioOfQuantiles(rounds: readonly Round[], options: BootstrapOptions = {}): Ratio {
  const { fraction = 0.5, resamples = 1000, confidence = 0.95, random = fixedSequence() } = options;
  const ratios = Array.from({ length: resamples }, () =>
    pooledRatio(
      rounds.map(() => drawn(rounds, random)),
      fraction,
    ),
  );
  const sorted = ascending(ratios);
  const outside = (1 - confidence) / 2;
  return {
    value: pooledRatio(rounds, fraction),
    low: quantile(sorted, outside),
    high: quantile(sorted, 1 - outside),
    confidence,
  };
}

function pooledRatio(rounds: readonly Round[], fraction: number): number {
  const numerators = rounds.flatMap(({ numerator }) => numerator);
  const denominators = rounds.flatMap(({ denominator }) => denominator);
  return quantileOf(numerators, fraction) / quantileOf(denominators, fraction);
}

function drawn(rounds: readonly Round[], random: () => number): Round {
  return rounds[Math.floor(random() * rounds.length)] ?? { numerator: [], denominator: [] };
}

function ascending(samples: readonly number[]): Float64Array {
  return Float64Array.from(samples).sort();
}

/** NaN when there are none. */
export function quantileOf(samples: readonly number[], fraction: number): number {
  return quantile(ascending(samples), fraction);
}

/** Of sorted samples; NaN when there are none. */
function quantile(sorted: Float64Array, fraction: number): number {
  const position = fraction * (sorted.length - 1);
  const below = sorted[Math.floor(position)] ?? Number.NaN;
  const above = sorted[Math.ceil(position)] ?? Number.NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** Mulberry32: good enough to draw rounds, and the same on every machine. */
function fixedSequence(): () => number {
  let state = 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
