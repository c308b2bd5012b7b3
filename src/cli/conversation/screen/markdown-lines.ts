import MarkdownIt, { type Token } from "markdown-it";
import { displayWidth } from "../../../lib/terminal/display-width.js";
import { neutralise, neutraliseLine } from "../../../lib/terminal/terminal.js";
import { ansiLine } from "./ansi-line.js";
import { type Alignment, type Table, tableLines } from "./markdown-table.js";
import { piecesOf } from "./message-pieces.js";
import {
  codeLines,
  type Span,
  type StyledLine,
  span,
  type Tone,
  textLines,
  wrapSpans,
} from "./styled-line.js";
import { withoutTabs } from "./text-layout.js";

/** Where quotes and lists are nested deeper, the text is shown as it is: the parser leaves out what is below its own limit. */
const MAX_NESTING = 40;
/** With less room, what is in a list or a quote is not indented. */
const LEAST_COLUMNS = 10;
const RULE_COLUMNS = 40;

/** Tags stay text. Definitions of links do too, because each piece of a message is parsed alone. */
const parser = new MarkdownIt({ html: false, maxNesting: MAX_NESTING }).disable("reference");

/** A whole message for a terminal, with a newline after each row. */
export function messageText(
  message: string,
  { columns, usesColour }: { columns: number; usesColour: boolean },
): string {
  return piecesOf(neutralise(message).trim())
    .flatMap(({ kind, text, hasGap }): StyledLine[] => [
      ...(hasGap ? [[]] : []),
      ...{ code: codeLines, text: textLines, markdown: markdownLines }[kind](text, columns),
    ])
    .map((line) => `${ansiLine(line, { usesColour }).trimEnd()}\n`)
    .join("");
}

/**
 * Markdown as rows. Lines of the text stay lines, and blank lines between blocks stay blank. Nothing is told by colour alone: code and
 * struck text keep their signs.
 */
export function markdownLines(text: string, columns: number): StyledLine[] {
  const tokens = parser.parse(text, {});
  if (tokens.some(({ level }) => level >= MAX_NESTING - 1)) return textLines(text, columns);
  return new MarkdownLayout(tokens, text.split("\n")).blocks(columns);
}

/** Lays out the blocks of one piece, one after the other. */
class MarkdownLayout {
  readonly #tokens: readonly Token[];
  readonly #source: readonly string[];
  #at = 0;

  constructor(tokens: readonly Token[], source: readonly string[]) {
    this.#tokens = tokens;
    this.#source = source;
  }

  /** The blocks up to the end of the list, item or quote that they are in, or to the end of the text. */
  blocks(columns: number): StyledLine[] {
    const rows: StyledLine[] = [];
    for (let token = this.#next(); token !== undefined && token.nesting >= 0; token = this.#next()) {
      if (rows.length > 0 && this.#isAfterBlank(token)) rows.push([span("")]);
      for (const row of this.#block(token, columns)) rows.push(row);
    }
    return rows;
  }

  #next(): Token | undefined {
    return this.#tokens[this.#at++];
  }

  #isAfterBlank({ map }: Token): boolean {
    const above = map === null ? undefined : this.#source[map[0] - 1];
    return above !== undefined && /^[\s>]*$/.test(above);
  }

  #block(token: Token, columns: number): StyledLine[] {
    switch (token.type) {
      case "heading_open":
        return this.#text(columns, "strong");
      case "paragraph_open":
        return this.#text(columns, "plain");
      case "blockquote_open":
        return this.#inside(span("│ ", "quiet"), span("│ ", "quiet"), columns);
      case "list_item_open": {
        const mark = this.#taskMark() ?? (token.info === "" ? "- " : `${token.info}${token.markup} `);
        return this.#inside(span(mark, "accent"), span(" ".repeat(displayWidth(mark))), columns);
      }
      case "fence":
      case "code_block":
        return codeLines(token.content.replace(/\n$/, ""), columns);
      case "hr":
        return [[span("─".repeat(Math.min(columns, RULE_COLUMNS)), "quiet")]];
      case "table_open": {
        const table = this.#table();
        const written = this.#source.slice(...(token.map ?? [])).map((line) => line.replace(/^[\s>]*/, ""));
        return hasMoreCells(table, written)
          ? textLines(written.join("\n"), columns)
          : tableLines(table, columns);
      }
      // A list: its items are the blocks.
      default:
        return this.blocks(columns);
    }
  }

  #text(columns: number, tone: Tone): StyledLine[] {
    const inline = this.#next();
    this.#next();
    return inlineLines(inline?.children ?? [], tone).flatMap((line) => wrapSpans(line, columns));
  }

  #inside(first: Span, more: Span, columns: number): StyledLine[] {
    const room = columns - displayWidth(first.text);
    if (room < LEAST_COLUMNS) return this.blocks(columns);
    const rows = this.blocks(room);
    return rows.length === 0 ? [[first]] : rows.map((row, index) => [index === 0 ? first : more, ...row]);
  }

  /** The mark of an item that begins with a box, which is taken out of its text. */
  #taskMark(): string | null {
    const text = this.#tokens[this.#at + 1]?.children?.[0];
    const box = text?.type === "text" ? /^\[([ xX])\] /.exec(text.content) : null;
    if (text === undefined || box === null) return null;
    text.content = text.content.slice(box[0].length);
    return box[1] === " " ? "□ " : "✔ ";
  }

  #table(): Table {
    const rows: StyledLine[][] = [];
    const alignments: Alignment[] = [];
    for (
      let token = this.#next();
      token !== undefined && token.type !== "table_close";
      token = this.#next()
    ) {
      if (token.type === "tr_open") rows.push([]);
      if (token.type === "th_open") alignments.push(alignmentOf(token));
      if (token.type === "inline")
        rows.at(-1)?.push(inlineLines(token.children ?? [], rows.length === 1 ? "strong" : "plain").flat());
    }
    const [header = [], ...others] = rows;
    return { header, rows: others, alignments };
  }
}

/** Whether a row has cells for which there is no column: the parser leaves them out, so such a table is shown as it is written. */
function hasMoreCells({ header }: Table, written: readonly string[]): boolean {
  return written.some((line) => {
    const cells = line
      .replace(/^\|/, "")
      .replace(/(?<!\\)\|\s*$/, "")
      .split(/(?<!\\)\|/);
    return cells.length > header.length;
  });
}

function alignmentOf(cell: Token): Alignment {
  const style = String(cell.attrGet("style") ?? "");
  return style.endsWith("right") ? "right" : style.endsWith("center") ? "center" : "left";
}

/** Text with emphasis, code and links, as lines that are not wrapped yet. */
function inlineLines(tokens: readonly Token[], tone: Tone): Span[][] {
  const lines: Span[][] = [[]];
  const tones: Tone[] = [tone];
  const links: { address: string; text: string }[] = [];
  const current = () => tones.at(-1) ?? tone;
  const add = (text: string, as: Tone = current()) => {
    // What an entity such as &#x202e; stands for was not in the text when that was neutralised.
    lines.at(-1)?.push(span(neutraliseLine(withoutTabs(text)), as));
    for (const link of links) link.text += text;
  };
  for (const token of tokens) {
    switch (token.type) {
      case "softbreak":
      case "hardbreak":
        lines.push([]);
        break;
      case "code_inline":
        add(`\`${token.content}\``, "accent");
        break;
      case "strong_open":
        tones.push("strong");
        break;
      case "em_open":
        tones.push(current() === "strong" ? "strong" : "emphasis");
        break;
      case "s_open":
        tones.push("quiet");
        add("~~");
        break;
      case "s_close":
        add("~~");
        tones.pop();
        break;
      case "strong_close":
      case "em_close":
        tones.pop();
        break;
      case "link_open":
        links.push({ address: String(token.attrGet("href") ?? ""), text: "" });
        break;
      case "link_close": {
        const { address = "", text = "" } = links.pop() ?? {};
        if (text !== address && `mailto:${text}` !== address) add(` (${address})`, "quiet");
        break;
      }
      case "image":
        add(`picture ${token.content} (${String(token.attrGet("src") ?? "")})`);
        break;
      default:
        add(token.content);
    }
  }
  return lines;
}
