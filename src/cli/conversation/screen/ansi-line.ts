import { styleText } from "node:util";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { StyledLine, Tone } from "./styled-line.js";

const styles: Record<Tone, Parameters<typeof styleText>[0] | null> = {
  plain: null,
  quiet: "dim",
  strong: "bold",
  emphasis: "italic",
  accent: "cyan",
  good: "green",
  bad: "red",
  warning: "yellow",
  reasoning: ["dim", "italic"],
  prompt: ["bold", "blue"],
};

/**
 * A row as it is written to the terminal. Every text is neutralised once more here, so the only control
 * sequences that reach the terminal are the colours that this function adds.
 */
export function ansiLine(line: StyledLine, { usesColour }: { usesColour: boolean }): string {
  return line
    .map(({ text, tone }) => styled(neutraliseLine(text), usesColour ? styles[tone] : null))
    .join("");
}

function styled(text: string, style: (typeof styles)[Tone]): string {
  return style === null || text.trim() === "" ? text : styleText(style, text, { validateStream: false });
}
