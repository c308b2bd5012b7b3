import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../setup/run.js";
import { mutant, OTHER_OPERATOR } from "./mutant.js";

/** Comments, strings, characters and lines of the preprocessor are one token each, and get no faults. */
const TOKEN =
  /\/\*[\s\S]*?\*\/|\/\/[^\n]*|"(?:[^"\\]|\\[\s\S])*"|'(?:[^'\\]|\\.)*'|^[ \t]*#(?:[^\n\\]|\\[\s\S])*|[A-Za-z_]\w*|0x[\da-fA-F]+\w*|\d[\w.]*|->|\+\+|--|<<=|>>=|[-+*/%&|^<>=!]=|<<|>>|&&|\|\||[^\s\w]/gm;

/** All faults for the C files of the runner. */
export async function runnerMutants(place) {
  const names = (await readdir(join(root, place))).filter((name) => name.endsWith(".c")).sort();
  const found = [];
  for (const name of names) {
    const file = `${place}/${name}`;
    found.push(...mutantsOf(file, await readFile(join(root, file), "utf8")));
  }
  return found;
}

export function mutantsOf(file, source) {
  const tokens = [...source.matchAll(TOKEN)].map(({ 0: text, index }) => ({
    text,
    start: index,
    end: index + text.length,
  }));
  const found = [];
  const add = ({ start, end }, text, kind) => found.push(mutant({ file, source, start, end, text, kind }));
  let depth = 0;
  /** The words before the parentheses that are open, and before the one that was closed last. */
  const open = [];
  let closed = "";
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1]?.text ?? "";
    if (token.text === "{") depth++;
    if (token.text === "}") depth--;
    if (token.text === "(") open.push(before);
    if (token.text === ")") closed = open.pop() ?? "";
    if (depth === 0) continue;
    const other = OTHER_OPERATOR[token.text];
    const after = tokens[at + 1]?.text ?? "";
    if (other !== undefined && isBinary(token.text, before, after) && !isOfDescriptor(tokens, at))
      add(token, other, `${token.text} becomes ${other}`);
    if (token.text === "!") add(token, "", "without !");
    if (token.text === "true" || token.text === "false")
      add(token, token.text === "true" ? "false" : "true", `${token.text} becomes its opposite`);
    // -1 becomes 1, not -2: code only asks whether such a number is negative.
    if (isSign(tokens, at)) add(token, "", "without the sign");
    else if (isPlainNumber(tokens, at) && !isBound(before, after))
      add(token, oneMore(token.text), `${token.text} becomes one more`);
    if (token.text === "if" && tokens[at + 1]?.text === "(") {
      const condition = { start: tokens[at + 1].end, end: closing(tokens, at + 1).start };
      for (const value of ["1", "0"]) add(condition, value, `the condition is ${value}`);
    }
    const isAfterHead = before === ")" && ["if", "for", "while"].includes(closed);
    const begins = isAfterHead || ["{", "}", ";", "else"].includes(before);
    if (begins && open.length === 0 && /^[A-Za-z_]\w*$/.test(token.text)) {
      const statement = wholeStatement(tokens, at);
      if (statement !== null) add(statement, ";", "the statement is left out");
    }
  }
  return found;
}

/** An octal number stays one. */
function oneMore(number) {
  return /^0[0-7]+$/.test(number)
    ? `0${(Number.parseInt(number, 8) + 1).toString(8)}`
    : String(Number(number) + 1);
}

/** A number without a sign that is not the size of a buffer on the stack, where one byte more makes no difference. */
function isPlainNumber(tokens, at) {
  const [type, name, before, number, after] = [-3, -2, -1, 0, 1].map((by) => tokens[at + by]?.text ?? "");
  const isOfBuffer =
    before === "[" && after === "]" && /^[A-Za-z_]\w*$/.test(name) && /^(?:char|uint8_t|,)$/.test(type);
  return /^\d+$/.test(number) && !isSign(tokens, at - 1) && !(isOfBuffer && Number(number) >= 16);
}

/** A minus that is the sign of a number, and subtracts nothing. */
function isSign(tokens, at) {
  return (
    tokens[at]?.text === "-" &&
    /^\d+$/.test(tokens[at + 1]?.text ?? "") &&
    /^(?:return|[^\w)\]]|&&|\|\||[=!<>]=)$/.test(tokens[at - 1]?.text ?? "")
  );
}

/** Then one more is the same fault as the other operator: `x < 2` and `x <= 1`. */
function isBound(before, after) {
  return ["<", ">="].includes(before) && [")", "&&", "||", ";", "?", ","].includes(after);
}

/** Descriptor 0 is open in every process of the runner, so that `fd < 0` and `fd <= 0` are the same. */
function isOfDescriptor(tokens, at) {
  return (
    ["<", ">="].includes(tokens[at].text) &&
    tokens[at + 1]?.text === "0" &&
    /(?:^|_)fd$/.test(tokens[at - 1]?.text ?? "")
  );
}

/** Not a pointer, an address or a sign: what stands before is a value, and what follows is none of a declaration's. */
function isBinary(operator, before, after) {
  if (!/^(?:[A-Za-z_]\w*|\d\w*|\)|\])$/.test(before)) return false;
  if (["return", "case", "sizeof", "const", "struct", "int", "char", "void"].includes(before)) return false;
  if (/_t$/.test(before)) return false;
  return operator !== "*" || (before !== ")" && after !== ")" && after !== "*");
}

function closing(tokens, open) {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at].text === "(") depth++;
    if (tokens[at].text === ")" && --depth === 0) return tokens[at];
  }
  return tokens[open];
}

/** A call or an assignment up to its semicolon; null for declarations and for what steers the way through a function. */
function wholeStatement(tokens, at) {
  const STEERS = [
    "if",
    "else",
    "for",
    "while",
    "do",
    "switch",
    "case",
    "default",
    "return",
    "goto",
    "static",
  ];
  const first = tokens[at];
  const next = tokens[at + 1]?.text ?? "";
  if (STEERS.includes(first.text)) return null;
  if (!["(", "=", "->", ".", "[", "++", "--", "+=", "-=", "|=", "&="].includes(next)) return null;
  for (let last = at; last < tokens.length; last++) {
    if (tokens[last].text === "{" || tokens[last].text === "}") return null;
    if (tokens[last].text === ";") return { start: first.start, end: tokens[last].end };
  }
  return null;
}
