import type { SettingDifference } from "./batch-settings.js";

const SHOWN_CHANGES = 20;

/** One line for each field, for the message of an error. */
export function changesText(changes: readonly SettingDifference[]): string {
  const lines = changes
    .slice(0, SHOWN_CHANGES)
    .map(({ field, before, after }) => `  ${field}: ${shown(before)} → ${shown(after)}`);
  const left = changes.length - lines.length;
  return [...lines, ...(left > 0 ? [`  and ${left} more`] : [])].join("\n");
}

/** The start of a checksum is enough to see that it is another one. */
function shown(value: string | null): string {
  return value === null ? "nothing" : value.replace(/^([0-9a-f]{12})[0-9a-f]{52}$/, "$1…");
}
