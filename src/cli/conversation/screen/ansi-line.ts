import { styleText } from "node:util";
import { neutraliseLine } from "../../../lib/terminal/terminal.js";
import type { StyledLine, Tone } from "./styled-line.js";

const styles: Record<Tone, Parameters<typeof styleText>[0] | null> = {
  plain: null,
  quiet: "dim",
  strong: "bold",
  accent: "cyan",
  good: "green",
  bad: "red",
  warning: "yellow",
  thought: ["dim", "italic"],
  asked: ["bold", "blue"],
};

/**
 * A row as it is written to a terminal: the last door before it. Whatever a text was through before, nothing in it can do anything
 * there; the only sequences are the colours from here.
 */
export function ansiLine(line: StyledLine, { usesColour }: { usesColour: boolean }): string {
  return line
    .map(({ text, tone }) => styled(neutraliseLine(text), usesColour ? styles[tone] : null))
    .join("");
}

function styled(text: string, style: (typeof styles)[Tone]): string {
  return style === null || text.trim() === "" ? text : styleText(style, text, { validateStream: false });
}
