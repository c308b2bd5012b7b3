/**
 * The harmless part of an SGR sequence: colours, bold, italic, underline, reverse and their ends, but no
 * concealed or blinking text and no fonts. Null if nothing is left; "" is a plain reset.
 */
export function keptColours(parameters: string): string | null {
  if (parameters === "") return "";
  if (!/^[\d;:]*$/.test(parameters)) return null;
  const kept: string[] = [];
  const items = parameters.split(";");
  for (let at = 0; at < items.length; ) {
    const length = itemLength(items, at);
    if (length === 0) break;
    if (isHarmless(items[at] ?? "")) kept.push(...items.slice(at, at + length));
    at += length;
  }
  return kept.length === 0 ? null : kept.join(";");
}

const extendedColours = [38, 48, 58];

/** `38;5;N` and `38;2;R;G;B` are single items of three and five numbers. 0 if it is incomplete. */
function itemLength(items: string[], at: number): number {
  if (!extendedColours.includes(Number(items[at]))) return 1;
  const length = items[at + 1] === "5" ? 3 : items[at + 1] === "2" ? 5 : 0;
  return at + length <= items.length ? length : 0;
}

function isHarmless(item: string): boolean {
  const code = Number(item.split(":", 1)[0]);
  return (
    code <= 4 || code === 7 || code === 9 || (code >= 21 && code <= 49) || isBrightOrUnderlineColour(code)
  );
}

function isBrightOrUnderlineColour(code: number): boolean {
  return code === 58 || code === 59 || (code >= 90 && code <= 97) || (code >= 100 && code <= 107);
}
