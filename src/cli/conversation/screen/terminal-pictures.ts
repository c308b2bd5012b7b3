import type { Environment } from "../../../lib/env.js";
import { ImageResizer, type ImageSize } from "../../../tools/index.js";
import { type Drawing, drawingOf, type Picture, type PictureProtocol } from "./picture.js";
import type { ScreenSize } from "./screen-state.js";

/** What has not been answered after this time holds nothing up any more. An answer that comes later still counts for later pictures. */
const ANSWER_MS = 1000;
/** A picture that takes longer is only described. */
const CONVERSION_MS = 3000;
/** Cells of other sizes are not believed. In pixels a side. */
const CELL_PIXELS = { least: 4, most: 200 };

/**
 * In this order: kitty's graphics, by a picture that is not shown; the terminal's name; the size of a cell; and what every terminal
 * answers, its attributes, so that nothing comes after that.
 */
const QUESTIONS = "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[>q\x1b[16t\x1b[c";

/** What a conversation needs of the keyboard, where a terminal's answers come in. */
export interface AnswerSource {
  onAnswer: ((answer: string) => void) | null;
}

interface PictureParts {
  keyboard: AnswerSource;
  environment: Environment;
  write(text: string): void;
  /** Called when a picture that was pending may be drawn. */
  onChange(): void;
}

interface Converted {
  at: ScreenSize;
  /** Undefined while it is being made; null if it cannot be. */
  text: string | null | undefined;
}

/** Asks the terminal how it shows pictures, and draws them. */
export class TerminalPictures {
  /** Resolves when the terminal has answered everything, or has had time enough. */
  readonly settled: Promise<void>;
  readonly #parts: PictureParts;
  readonly #resizer = new ImageResizer({ maxMs: CONVERSION_MS });
  readonly #converted = new WeakMap<Picture, Converted>();
  #settle: () => void = () => undefined;
  #timer: NodeJS.Timeout | undefined;
  #mayAnswer: boolean;
  #isClosed = false;
  #hasKitty = false;
  #hasFiles = false;
  #hasSixels = false;
  #cell: ImageSize | null = null;

  constructor(parts: PictureParts) {
    this.#parts = parts;
    this.settled = new Promise((resolve) => {
      this.#settle = resolve;
    });
    this.#mayAnswer = canAsk(parts.environment);
    if (this.#mayAnswer) this.#ask();
    else this.#settle();
  }

  /** Nothing is pending any more. */
  close(): void {
    this.#isClosed = true;
    this.#decide();
  }

  /** The characters that draw a picture: null if it is not shown, undefined as long as that is not known. */
  drawn(picture: Picture, { columns, rows }: ScreenSize): string | null | undefined {
    if (this.#mayAnswer) return undefined;
    const protocol = this.#protocol();
    const drawing = protocol && drawingOf(picture, { protocol, cell: this.#cell, columns, rows });
    if (drawing === null || drawing.conversion === null) return drawing?.draw(null) ?? null;
    const { text, at } = this.#converted.get(picture) ?? {};
    if (at?.columns === columns && at.rows === rows)
      return text === undefined && this.#isClosed ? null : text;
    if (this.#isClosed) return null;
    void this.#convert(picture, drawing, { at: { columns, rows }, text: undefined });
    return undefined;
  }

  #ask(): void {
    this.#parts.keyboard.onAnswer = (answer) => this.#read(answer);
    this.#timer = setTimeout(() => this.#decide(), ANSWER_MS);
    this.#parts.write(QUESTIONS);
  }

  async #convert(picture: Picture, { conversion, draw }: Drawing, converted: Converted): Promise<void> {
    this.#converted.set(picture, converted);
    const bytes = Buffer.from(picture.file?.base64 ?? "", "base64");
    const made = conversion === null ? null : await this.#resizer.scale(bytes, conversion);
    converted.text = made === null ? null : draw(made);
    if (!this.#isClosed) this.#parts.onChange();
  }

  #protocol(): PictureProtocol | null {
    // Its pictures may be JPEG files, too.
    if (this.#hasFiles) return "iterm2";
    if (this.#hasKitty) return "kitty";
    return this.#hasSixels ? "sixel" : null;
  }

  #read(answer: string): void {
    this.#hasKitty ||= /^_Gi=31(?:,[^;]*)?;OK$/.test(answer);
    this.#hasFiles ||= /^P>\|(?:iTerm2|WezTerm)\b/.test(answer);
    this.#cell = cellOf(answer) ?? this.#cell;
    const attributes = /^\[\?[\d;]*c$/.exec(answer)?.[0].slice(2, -1).split(";");
    if (attributes === undefined) return;
    // The first says what kind of terminal it is.
    this.#hasSixels = attributes.slice(1).includes("4");
    this.#decide();
  }

  #decide(): void {
    clearTimeout(this.#timer);
    const wasPending = this.#mayAnswer;
    this.#mayAnswer = false;
    this.#settle();
    if (wasPending && !this.#isClosed) this.#parts.onChange();
  }
}

function cellOf(answer: string): ImageSize | null {
  const [, height, width] = /^\[6;(\d{1,4});(\d{1,4})t$/.exec(answer)?.map(Number) ?? [];
  if (height === undefined || width === undefined) return null;
  const { least, most } = CELL_PIXELS;
  return [width, height].every((side) => side >= least && side <= most) ? { width, height } : null;
}

/**
 * Programs such as tmux pass no pictures on, and show some questions, or take them for something else; the Linux console and
 * Terminal.app of macOS show them, too.
 */
function canAsk({ variables, forbidsColor }: Environment): boolean {
  const { TERM = "dumb", TERM_PROGRAM, TMUX, STY } = variables;
  const isInside = TMUX !== undefined || STY !== undefined;
  return !(forbidsColor || isInside || TERM_PROGRAM === "Apple_Terminal" || DEAF.test(TERM));
}

const DEAF = /^(?:tmux|screen|linux|dumb|eterm)/;
