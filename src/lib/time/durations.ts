const unitMs: Record<string, number> = { ms: 1, "": 1000, s: 1000, m: 60_000, h: 3_600_000 };

/** `0.4 ms`, `12 ms`, `3.2 s`, `2 m 05 s`, `1 h 20 m`. */
export function formatDuration(ms: number): string {
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m ${twoDigits(seconds % 60)} s`;
  const minutes = Math.round(seconds / 60);
  return `${Math.floor(minutes / 60)} h ${twoDigits(minutes % 60)} m`;
}

/** Parses `1.5` (seconds), `250ms`, `30s`, `2m` or `1h`; null for anything else, zero included. */
export function parseDuration(text: string): number | null {
  const match = /^([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|)$/.exec(text);
  const ms = Math.round(Number(match?.[1]) * (unitMs[match?.[2] ?? ""] ?? Number.NaN));
  return Number.isSafeInteger(ms) && ms > 0 ? ms : null;
}

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}
