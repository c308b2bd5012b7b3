const BASE_DELAY_MS = 200;
/** The longest wait before a retry, even if the endpoint asks for more. */
export const LONGEST_WAIT_MS = 10 * 60 * 1000;

/** The delay that the endpoint asked for, else 200 ms, doubled for each further attempt, ±10 %. */
export function retryDelayMs(
  attempt: number,
  { retryAfterMs, random }: { retryAfterMs: number | null; random: () => number },
): number {
  if (retryAfterMs !== null) return Math.min(Math.max(0, retryAfterMs), LONGEST_WAIT_MS);
  return Math.min(BASE_DELAY_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.9 + 0.2 * random());
}

/** Reads `retry-after-ms`, or `retry-after` in seconds or as a date; null if neither is valid. */
export function retryAfterOf(headers: Headers | undefined, nowMs: number): number | null {
  const ms = number(headers?.get("retry-after-ms"));
  if (ms !== null) return ms;
  const retryAfter = headers?.get("retry-after");
  const seconds = number(retryAfter);
  if (seconds !== null) return seconds * 1000;
  const date = /^[A-Z][a-z]+,? /.test(retryAfter ?? "") ? Date.parse(retryAfter ?? "") : Number.NaN;
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}

/** The delay in a message such as "try again in 1.5s", "20ms" or "3 seconds"; null without one. */
export function retryAfterInMessage(message: string): number | null {
  const match = /try again in\s*(\d+(?:\.\d+)?)\s*(ms|s|seconds?)\b/i.exec(message);
  if (match === null) return null;
  const [, amount, unit] = match;
  return Number(amount) * (unit?.toLowerCase() === "ms" ? 1 : 1000);
}

function number(text: string | null | undefined): number | null {
  return text !== null && text !== undefined && /^\s*\d{1,15}(\.\d+)?\s*$/.test(text) ? Number(text) : null;
}
