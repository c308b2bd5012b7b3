/** Whole cents of a text such as "12", "12.3" or "-12.34". */
export function parseMoney(text) {
  const match = /^(-?)(\d+)(?:\.(\d{1,2}))?$/.exec(text);
  if (match === null) throw new RangeError(`not an amount: ${text}`);
  const [, sign, whole, fraction = ""] = match;
  const cents = Number(whole) * 100 + Number(fraction.padEnd(2, "0"));
  return sign === "-" ? -cents : cents;
}

/** "12.34", with a minus sign in front where it is one. */
export function formatMoney(cents) {
  const absolute = Math.abs(cents);
  const fraction = String(absolute % 100).padStart(2, "0");
  return `${cents < 0 ? "-" : ""}${Math.floor(absolute / 100)}.${fraction}`;
}

/** A percentage of an amount, rounded to the cent; half a cent goes away from zero. */
export function percentageOf(cents, percent) {
  const exact = (cents * percent) / 100;
  return Math.sign(exact) * Math.round(Math.abs(exact));
}

/**
 * Splits an amount in proportion to the weights. The shares always add up to the amount: cents that are left over by
 * rounding go to the first shares, one to each.
 */
export function allocate(cents, weights) {
  const totalWeight = sum(weights);
  if (totalWeight === 0) return weights.map(() => 0);
  const shares = weights.map((weight) => Math.trunc((cents * weight) / totalWeight));
  let left = cents - sum(shares);
  for (let index = 0; left > 0; index++) {
    shares[index] += 1;
    left -= 1;
  }
  return shares;
}

export function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
