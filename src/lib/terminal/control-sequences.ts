/** The parts of a text as a terminal reads them. */
export type TerminalToken =
  /** Printable characters, newlines and tabs. */
  | { kind: "text"; text: string }
  /** One control character outside of a sequence; also ESC and C1 characters without a valid sequence. */
  | { kind: "control"; character: string }
  /** `ESC [`: parameters such as "1;31" or "?1049"; `final` includes intermediates, as in "m" or " q". */
  | { kind: "csi"; parameters: string; final: string }
  /** An OSC ("]"), DCS ("P"), PM ("^"), APC ("_"), SOS ("X") or screen title ("k") with its text. */
  | { kind: "string"; opener: string; body: string }
  /** Any other escape sequence, without its ESC: "7", "(B". */
  | { kind: "escape"; text: string };

/** The longest control string that is recognised, in characters. A longer one is treated as text. */
const longestControlString = 16_384;

const c0 = String.raw`\x00-\x08\x0b-\x1f`;
const c1 = String.raw`\x7f-\x9f`;
const csiOpener = String.raw`(?:\x1b\[|\x9b)`;
const stringOpener = String.raw`(?:\x1b(?<seven>[\]P^_Xk])|(?<eight>[\x90\x98\x9d-\x9f]))`;
const stringBody = String.raw`(?<body>[^\x00-\x1f\x7f-\x9f]{0,${longestControlString}})`;

const text = sticky(`[^${c0}${c1}]+`);
const csi = sticky(
  String.raw`${csiOpener}(?<parameters>[\x30-\x3f]{0,256})(?<final>[\x20-\x2f]{0,8}[\x40-\x7e])`,
);
const controlString = sticky(String.raw`${stringOpener}${stringBody}(?:\x1b\\|\x9c|\x07)`);
const shortEscape = sticky(String.raw`\x1b(?<text>[\x20-\x2f]{1,8}[\x30-\x7e]|[\x30-\x7e])`);
const unfinished = [
  sticky(String.raw`\x1b[\x20-\x2f]{0,8}$`),
  sticky(String.raw`${csiOpener}[\x30-\x3f]{0,256}[\x20-\x2f]{0,8}$`),
  sticky(String.raw`${stringOpener}${stringBody}\x1b?$`),
];

const sevenBitOpener: Record<string, string> = {
  "\x90": "P",
  "\x98": "X",
  "\x9d": "]",
  "\x9e": "^",
  "\x9f": "_",
};

/** Splits a text that arrives in pieces into tokens. A sequence may be split between two pieces. */
export class TerminalTokens {
  #pending = "";

  *push(piece: string): Iterable<TerminalToken> {
    yield* this.#read(this.#pending + piece, { isEnd: false });
  }

  /** The rest of the text. An opener without an end is a control character, and what follows it is text. */
  *end(): Iterable<TerminalToken> {
    yield* this.#read(this.#pending, { isEnd: true });
  }

  *#read(input: string, { isEnd }: { isEnd: boolean }): Iterable<TerminalToken> {
    this.#pending = "";
    for (let at = 0; at < input.length; ) {
      const plain = matchAt(text, input, at)?.[0];
      if (!isEnd && plain === undefined && isUnfinished(input, at)) {
        this.#pending = input.slice(at);
        return;
      }
      const [token, length] = plain === undefined ? controlAt(input, at) : textToken(plain);
      yield token;
      at += length;
    }
  }
}

type TokenWithLength = [token: TerminalToken, length: number];

function textToken(plain: string): TokenWithLength {
  return [{ kind: "text", text: plain }, plain.length];
}

function isUnfinished(input: string, at: number): boolean {
  return unfinished.some((pattern) => matchAt(pattern, input, at) !== null);
}

function controlAt(input: string, at: number): TokenWithLength {
  return sequenceAt(input, at) ?? [{ kind: "control", character: input.charAt(at) }, 1];
}

function sequenceAt(input: string, at: number): TokenWithLength | null {
  const string = matchAt(controlString, input, at);
  if (string?.groups) {
    const { seven, eight = "", body = "" } = string.groups;
    return [{ kind: "string", opener: seven ?? sevenBitOpener[eight] ?? "", body }, string[0].length];
  }
  const command = matchAt(csi, input, at);
  if (command?.groups) {
    const { parameters = "", final = "" } = command.groups;
    return [{ kind: "csi", parameters, final }, command[0].length];
  }
  const short = matchAt(shortEscape, input, at);
  if (short?.groups && !opensLongerSequence(short[0])) {
    return [{ kind: "escape", text: short.groups.text ?? "" }, short[0].length];
  }
  return null;
}

/** Only the ESC of an incomplete sequence is taken as a control, so that its text stays visible. */
function opensLongerSequence(sequence: string): boolean {
  return /^.[[\]P^_Xk]$/s.test(sequence);
}

function matchAt(pattern: RegExp, input: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(input);
}

function sticky(source: string): RegExp {
  return new RegExp(source, "y");
}
