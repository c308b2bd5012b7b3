import { neutralise } from "../../../lib/terminal/terminal.js";
import { visibleLine } from "../../../lib/terminal/visible-line.js";

const TITLE_CHARS = 300;
/** A longer text is cut before it is sent to a client. */
const TEXT_CHARS = 64 * 1024;

/** A text as one short line, with invisible characters made visible. */
export function titleText(text: string): string {
  const line = visibleLine(
    text
      .slice(0, 4 * TITLE_CHARS)
      .trim()
      .replaceAll(/\s*\n\s*/g, " "),
  );
  return whole(line.length > TITLE_CHARS ? `${line.slice(0, TITLE_CHARS)}…` : line);
}

/**
 * A text without control sequences. Of a long one, the beginning and the end with a note of how much is
 * missing between them.
 */
export function longText(text: string, maxChars = TEXT_CHARS): string {
  return neutralise(shortened(text, maxChars));
}

/**
 * A text for a person to approve. Control and invisible characters are shown, because a shell or a server
 * gets them, too.
 */
export function exactText(text: string, maxChars = TEXT_CHARS): string {
  return shortened(text, maxChars).split("\n").map(visibleLine).join("\n");
}

/**
 * A text that a person or a model has written. Invisible characters stay, since emoji and some scripts need
 * them.
 */
export function proseText(text: string, maxChars: number): string {
  return neutralise(shortened(text, maxChars), { keepsInvisible: true });
}

function shortened(text: string, maxChars: number): string {
  if (text.length <= maxChars) return whole(text);
  const half = Math.floor(maxChars / 2);
  const [head, tail] = [whole(text.slice(0, half)), whole(text.slice(-half))];
  return `${head}\n… ${text.length - 2 * half} characters are not shown …\n${tail}`;
}

/**
 * A Markdown code block. Its fence is longer than any run of backticks in the text, so the text cannot end
 * it.
 */
export function fenced(text: string, language = ""): string {
  const longest = text.match(/`{3,}/g)?.reduce((max, { length }) => Math.max(max, length), 2) ?? 2;
  const fence = "`".repeat(longest + 1);
  return `${fence}${language}\n${text.replace(/\n$/, "")}\n${fence}`;
}

/** Removes half a surrogate pair at either end, which a cut leaves and some clients refuse. */
function whole(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}
