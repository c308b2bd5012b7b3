/**
 * McNemar's exact test: how likely a split at least as uneven is if a task is as likely to flip one way as the
 * other. 1 if none has flipped.
 */
export function mcnemar({ gained, lost }: { gained: number; lost: number }): number {
  const flipped = gained + lost;
  let probability = 0.5 ** Math.min(flipped, 1000);
  if (flipped > 1000) return normalApproximation(gained, lost);
  let tail = 0;
  for (let count = 0; count <= Math.min(gained, lost); count++) {
    tail += probability;
    probability *= (flipped - count) / (count + 1);
  }
  return Math.min(1, 2 * tail);
}

/** Approximates the probability, with continuity correction, for numbers whose exact probabilities would underflow. */
function normalApproximation(gained: number, lost: number): number {
  const z = Math.max(0, Math.abs(gained - lost) - 1) / Math.sqrt(gained + lost);
  return Math.min(1, 2 * upperTail(z));
}

/** Upper tail of the normal distribution: Abramowitz and Stegun 7.1.26, to seven digits. */
function upperTail(z: number): number {
  const x = z / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const series =
    ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return (series * Math.exp(-x * x)) / 2;
}
