/** Values from `from` up to but not including `to`; in the last bin, `to` too. */
export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Rewards are usually from 0 to 1, in tenths, where 0 and 1 have bins of their own. */
export interface RewardBin {
  label: string;
  count: number;
}

const BINS = 24;

/** Far below any quantity shown; a width of 0, from a value near the smallest number, could not be divided by. */
const SMALLEST_WIDTH = 1e-300;

export function rewardBins(rewards: readonly (number | null)[]): RewardBin[] {
  const known = rewards.filter((reward) => reward !== null);
  const count = (isIn: (reward: number) => boolean) => known.filter(isIn).length;
  const tenths = Array.from({ length: 10 }, (_, tenth) => ({
    label: `${tenth / 10}–${(tenth + 1) / 10}`,
    count: count((reward) => reward > 0 && reward < 1 && Math.floor(reward * 10) === tenth),
  }));
  return [
    { label: "below 0", count: count((reward) => reward < 0) },
    { label: "0", count: count((reward) => reward === 0) },
    ...tenths,
    { label: "1", count: count((reward) => reward === 1) },
    { label: "above 1", count: count((reward) => reward > 1) },
    { label: "none", count: rewards.length - known.length },
  ].filter(({ label, count }) => count > 0 || label === "0" || label === "1" || label.includes("–"));
}

/** Bins of the same width over all values; the last one is open above the 99th percentile, so that one outlier hides nothing. */
export function bins(values: readonly number[]): Bin[] {
  if (values.length === 0) return [];
  const sorted = values.toSorted((a, b) => a - b);
  const largest = sorted.at(-1) ?? 0;
  const usual = sorted[Math.floor((sorted.length - 1) * 0.99)] ?? largest;
  const width = niceWidth(Math.max((usual || largest || 1) / BINS, SMALLEST_WIDTH));
  const count = Math.min(BINS, Math.max(1, Math.floor(usual / width) + 1));
  const all = Array.from(
    { length: count },
    (_, at): Bin => ({ from: at * width, to: (at + 1) * width, count: 0 }),
  );
  const last = all.at(-1);
  if (last !== undefined && largest >= last.to) last.to = largest;
  for (const value of sorted) {
    const bin = all[Math.min(count - 1, Math.floor(value / width))];
    if (bin !== undefined) bin.count++;
  }
  return all;
}

/** The next larger of 1, 2 and 5 times a power of ten. */
function niceWidth(width: number): number {
  const power = 10 ** Math.floor(Math.log10(width));
  const factor = [1, 2, 5, 10].find((one) => one * power >= width) ?? 10;
  return factor * power;
}

export function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const [low, high] = [sorted[sorted.length % 2 === 0 ? middle - 1 : middle], sorted[middle]];
  return low === undefined || high === undefined ? null : (low + high) / 2;
}
