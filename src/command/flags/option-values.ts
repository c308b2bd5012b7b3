import { InvalidArgumentError } from "commander";
import { parseBytes, SIZE_WORDS } from "../../lib/bytes.js";
import { formatDuration, parseDuration } from "../../lib/time/durations.js";

/** Parses a flag's duration into milliseconds. */
export function durationArgument({ atMostMs }: { atMostMs: number }): (text: string) => number {
  return (text) => {
    const ms = parseDuration(text);
    if (ms === null && !/^[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h)?$/.test(text))
      throw new InvalidArgumentError("It must be seconds, or a number with ms, s, m or h.");
    if (ms !== null && ms <= atMostMs) return ms;
    throw new InvalidArgumentError(`It must be more than nothing, and at most ${formatDuration(atMostMs)}.`);
  };
}

/** Parses a flag's size into bytes. */
export function sizeArgument(text: string): number {
  const bytes = parseBytes(text);
  if (bytes === null) throw new InvalidArgumentError(`It must be ${SIZE_WORDS}.`);
  return bytes;
}

/** For an option that may be repeated. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value];
}
