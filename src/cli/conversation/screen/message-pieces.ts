/** A part of a message that does not change any more: whole blocks of Markdown, or lines of a fenced block of code, or of text. */
export interface MessagePiece {
  kind: "markdown" | "code" | "text";
  text: string;
  /** Whether a blank row separates it from what comes before it in its message. */
  hasGap: boolean;
}

/** A message that is arriving, without the pieces that were taken from it. */
export interface GrowingMessage {
  /** Whole lines of the next piece, each with its newline. In a fenced block, blank lines that may be followed by code. */
  lines: string;
  /** The last line, which may still grow. */
  line: string;
  /** What `lines` are part of; null if there are none. */
  block: { kind: "text" | "list" } | Fence | null;
  isAfterBlank: boolean;
  hasPieces: boolean;
  /** Whether a blank row separates the next piece from the last one. */
  hasGap: boolean;
  /** How long the pieces are together. */
  takenLength: number;
}

/** A block of code at the top level, between two rows of backticks or tildes. */
interface Fence {
  kind: "fence";
  mark: string;
  indent: number;
  hasCode: boolean;
}

export const emptyMessage: GrowingMessage = {
  lines: "",
  line: "",
  block: null,
  isAfterBlank: false,
  hasPieces: false,
  hasGap: false,
  takenLength: 0,
};

/** In UTF-16 units. Whatever is longer is cut into several pieces, because the parser's time may grow faster than its text. */
const LONGEST_PIECE = 16_384;
/** What comes after so much of a message is shown as it is written, since a parser would need seconds for it. */
const LONGEST_MARKDOWN = 1024 * 1024;

/** Adds text to a message. Returns the pieces that are complete now, in a time that depends only on the length of the text. */
export function addText(
  message: GrowingMessage,
  text: string,
): { message: GrowingMessage; pieces: MessagePiece[] } {
  const cutter = new PieceCutter(message);
  cutter.add(text);
  return { message: cutter.message, pieces: cutter.pieces };
}

/** What is left of a message, as if it ended here. */
export function lastPieces(message: GrowingMessage): MessagePiece[] {
  const cutter = new PieceCutter(message);
  cutter.end();
  return cutter.pieces;
}

export function piecesOf(text: string): MessagePiece[] {
  const { message, pieces } = addText(emptyMessage, text);
  return [...pieces, ...lastPieces(message)];
}

const fenceStart = /^(?<indent> {0,3})(?<mark>`{3,}(?!.*`)|~{3,})/;
const listItem = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:\s|$)/;

/**
 * Cuts a message line by line, so that the pieces are the same however the text arrives. A piece ends at a blank line that does not
 * belong to a list, and before a fenced block. The parser of Markdown sees each piece alone.
 */
class PieceCutter {
  message: GrowingMessage;
  readonly pieces: MessagePiece[] = [];

  constructor(message: GrowingMessage) {
    this.message = { ...message };
  }

  add(text: string): void {
    for (let at = 0; at <= text.length; ) {
      const newline = text.indexOf("\n", at);
      const end = newline === -1 ? text.length : newline;
      this.#grow(text.slice(at, end));
      if (newline !== -1) this.#endLine();
      at = end + 1;
    }
  }

  end(): void {
    this.#endLine();
    this.#endPiece();
  }

  #grow(text: string): void {
    this.message.line += text;
    while (this.message.line.length > LONGEST_PIECE) {
      const { line } = this.message;
      const cut = line.slice(0, LONGEST_PIECE).replace(/[\ud800-\udbff]$/, "").length;
      this.message.line = line.slice(0, cut);
      this.#endLine();
      this.message.line = line.slice(cut);
    }
  }

  #endLine(): void {
    const { line, block } = this.message;
    this.message.line = "";
    if (block?.kind === "fence") this.#takeCode(line, block);
    else if (line.trim() === "") this.#takeBlank();
    else this.#takeText(line);
  }

  #takeBlank(): void {
    const { message } = this;
    if (message.block?.kind === "text") this.#endPiece();
    if (message.block === null) return;
    message.isAfterBlank = true;
    if (message.lines.length < LONGEST_PIECE) this.#keep("");
  }

  #takeText(line: string): void {
    const { message } = this;
    if (this.#beginsPiece(line)) this.#endPiece();
    else if (this.#isFull(line)) this.#endPiece({ hasGap: message.isAfterBlank });
    const { indent = "", mark } = fenceStart.exec(line)?.groups ?? {};
    if (message.block === null && mark !== undefined) {
      message.block = { kind: "fence", mark, indent: indent.length, hasCode: false };
      return;
    }
    if (message.block?.kind !== "list") message.block = { kind: listItem.test(line) ? "list" : "text" };
    message.isAfterBlank = false;
    this.#keep(line);
  }

  #isFull(line: string): boolean {
    const { block, lines } = this.message;
    return block !== null && lines.length + line.length > LONGEST_PIECE;
  }

  #beginsPiece(line: string): boolean {
    const { block, isAfterBlank } = this.message;
    const indent = fenceStart.exec(line)?.groups?.indent?.length;
    if (block?.kind !== "list") return block !== null && indent !== undefined;
    // A fence that is indented further belongs to an item of the list.
    if (indent !== undefined && indent < 2) return true;
    return isAfterBlank && !/^(?: {2}|\t)/.test(line) && !listItem.test(line);
  }

  #takeCode(line: string, fence: Fence): void {
    const { message } = this;
    if (isEndOf(fence, line)) {
      Object.assign(message, { lines: "", block: null });
      return;
    }
    const code = line.slice(Math.min(fence.indent, line.search(/[^ ]|$/)));
    if (code.trim() === "") {
      this.#keep(code);
      return;
    }
    this.#push({ kind: "code", text: message.lines + code, hasGap: message.hasGap && !fence.hasCode });
    message.lines = "";
    message.block = { ...fence, hasCode: true };
  }

  #keep(line: string): void {
    this.message.lines += `${line}\n`;
  }

  /** `hasGap`: whether a blank row separates the piece from the next one. */
  #endPiece({ hasGap = true } = {}): void {
    const { message } = this;
    const { lines, block } = message;
    if (block !== null && block.kind !== "fence")
      this.#push({
        kind: message.takenLength > LONGEST_MARKDOWN ? "text" : "markdown",
        text: lines.trimEnd(),
        hasGap: message.hasGap,
      });
    Object.assign(message, { lines: "", block: null, isAfterBlank: false, hasGap });
  }

  #push(piece: MessagePiece): void {
    const takenLength = this.message.takenLength + piece.text.length;
    Object.assign(this.message, { hasPieces: true, hasGap: true, takenLength });
    const last = this.pieces.at(-1);
    if (piece.kind === "code" && !piece.hasGap && last?.kind === "code")
      this.pieces[this.pieces.length - 1] = { ...last, text: `${last.text}\n${piece.text}` };
    else this.pieces.push(piece);
  }
}

function isEndOf({ mark }: Fence, line: string): boolean {
  const end = line.trim();
  return end.length >= mark.length && /^ {0,3}\S/.test(line) && end === mark.charAt(0).repeat(end.length);
}
