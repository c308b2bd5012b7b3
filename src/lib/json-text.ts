/** DEL and C1, which some terminals obey, line separators, and what turns the reading direction. */
const obeyed = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * JSON that may be shown on a terminal, as the log of a CI job is: `JSON.stringify` leaves characters as they are that a terminal obeys.
 * Whoever parses it gets what was put in.
 */
export function jsonText(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(obeyed, escaped);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
