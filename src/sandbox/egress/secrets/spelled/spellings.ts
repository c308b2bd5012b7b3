/** Names of characters in HTML, besides those of letters and digits, which have none. */
const HTML_NAMES: Readonly<Record<string, readonly string[]>> = {
  "!": ["excl"],
  '"': ["quot", "QUOT"],
  "#": ["num"],
  $: ["dollar"],
  "%": ["percnt"],
  "&": ["amp", "AMP"],
  "'": ["apos"],
  "(": ["lpar"],
  ")": ["rpar"],
  "*": ["ast", "midast"],
  "+": ["plus"],
  ",": ["comma"],
  ".": ["period"],
  "/": ["sol"],
  ":": ["colon"],
  ";": ["semi"],
  "<": ["lt", "LT"],
  "=": ["equals"],
  ">": ["gt", "GT"],
  "?": ["quest"],
  "@": ["commat"],
  "[": ["lsqb", "lbrack"],
  "\\": ["bsol"],
  "]": ["rsqb", "rbrack"],
  "^": ["Hat"],
  _: ["lowbar", "UnderBar"],
  "`": ["grave", "DiacriticalGrave"],
  "{": ["lcub", "lbrace"],
  "|": ["verbar", "vert", "VerticalLine"],
  "}": ["rcub", "rbrace"],
};

/** Ways in which shells and SQL write a quote inside of quotes. */
const QUOTED: Readonly<Record<string, readonly string[]>> = {
  "'": ["''", "'\\''", `'"'"'`],
  '"': ['""'],
};

/** Ways to write a line break inside of Base64 or hexadecimal, also in JSON. */
const LINE_BREAKS = ["\n", "\r\n", "\\n", "\\r\\n"];

/**
 * Ways in which programs write a byte of a text in longer form than as it is: in JSON and other literals, URLs, HTML, quoted-printable,
 * and in two of these at once, such as a URL in a URL or JSON in HTML. One character of each text stands for one byte.
 */
export function longSpellings(byte: number): string[] {
  const once = new Set(spelledOnce(byte));
  const twice = [...once].flatMap((text) => OUTER_ENCODERS.map((encode) => encode(text)));
  return [...new Set([...once, ...twice])];
}

/** A character of Base64 or hexadecimal that stands on a new line. */
export function afterLineBreak(character: string): string[] {
  return LINE_BREAKS.map((lineBreak) => lineBreak + character);
}

function spelledOnce(byte: number): string[] {
  const hex = byte.toString(16).padStart(2, "0");
  const digits = [hex, hex.toUpperCase()];
  const bytewise = [
    ...digits.flatMap((two) => [`%${two}`, `\\x${two}`, `=${two}`]),
    `\\${byte.toString(8).padStart(3, "0")}`,
  ];
  if (byte >= 0x80) return bytewise;
  const character = String.fromCharCode(byte);
  return [
    ...bytewise,
    ...digits.flatMap((two) => [`%u00${two}`, `\\u00${two}`, `\\u{${two}}`, `\\U000000${two}`]),
    ...["", "0", "00", "000"].flatMap((zeros) => [
      `&#${zeros}${byte};`,
      ...digits.flatMap((two) => [`&#x${zeros}${two};`, `&#X${zeros}${two};`]),
    ]),
    ...(HTML_NAMES[character] ?? []).map((name) => `&${name};`),
    ...(QUOTED[character] ?? []),
    ...(/[A-Za-z0-9]/.test(character) ? [] : [`\\${character}`]),
  ];
}

/** Encodings that a text that is encoded already gets in a document of another kind. */
const OUTER_ENCODERS: readonly ((text: string) => string)[] = [
  (text) => text.replace(/[\\"]/g, "\\$&"),
  (text) => text.replace(/[\\/]/g, "\\$&").replace(/["&'<>]/g, (one) => `\\u00${hexOf(one)}`),
  (text) => text.replace(/[^A-Za-z0-9]/g, (one) => `%${hexOf(one)}`),
  (text) => text.replace(/[^A-Za-z0-9]/g, (one) => `%${hexOf(one).toUpperCase()}`),
  (text) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("'", "&#39;"),
  (text) => text.replaceAll("&", "&#38;").replaceAll('"', "&#34;").replaceAll("'", "&#x27;"),
];

function hexOf(character: string): string {
  return character.charCodeAt(0).toString(16).padStart(2, "0");
}
