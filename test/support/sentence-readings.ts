import { parseSync } from "rolldown/utils";

/** What holds a sentence that was written for people or for a model. */
const sentenceNames: ReadonlySet<string> = new Set([
  "advice",
  "complaint",
  "evidence",
  "failure",
  "hint",
  "message",
  "problem",
  "reason",
  "refusal",
  "startFailure",
  "warning",
]);

/** Names that a code can have as well: `reason === "oom"` reads no sentence. */
const codeNames: ReadonlySet<string> = new Set(["failure", "reason", "refusal"]);

/** What makes another text of a text. */
const makesText: ReadonlySet<string> = new Set([
  "replace",
  "replaceAll",
  "slice",
  "substring",
  "toLowerCase",
  "toString",
  "toUpperCase",
  "trim",
  "trimEnd",
  "trimStart",
]);

/** What finds something out about the text it is called on. */
const readsText: ReadonlySet<string> = new Set([
  "endsWith",
  "includes",
  "indexOf",
  "lastIndexOf",
  "match",
  "matchAll",
  "search",
  "split",
  "startsWith",
]);

/** What finds something out about the text it is given. */
const readsArgument: ReadonlySet<string> = new Set(["exec", "get", "has", "includes", "indexOf", "test"]);

/** What a file must have in it to read a sentence: most have not, and need not be parsed. */
const anySentence = new RegExp(`\\b(?:${[...sentenceNames].join("|")})\\b`);

interface SyntaxNode {
  type: string;
  start: number;
  end: number;
  [field: string]: unknown;
}

/** Each place of a file that tests, searches or compares a sentence, as it is written. */
export function sentenceReadings(path: string, code: string): string[] {
  if (!anySentence.test(code)) return [];
  const { program, errors } = parseSync(path, code);
  if (errors.length > 0) throw new Error(`${path}: ${errors[0]?.message}`);
  const all = nodesOf(program);
  const names = new Set(sentenceNames);
  for (const name of all.flatMap((node) => otherNames(node, names))) names.add(name);
  return all
    .filter((node) => readsSentence(node, names))
    .map(({ start, end }) => code.slice(start, end).replace(/\s+/g, " "));
}

/** In the order in which they are written. */
function nodesOf(value: unknown, found: SyntaxNode[] = []): SyntaxNode[] {
  if (Array.isArray(value)) for (const one of value) nodesOf(one, found);
  else if (isNode(value)) {
    found.push(value);
    for (const name in value) nodesOf(value[name], found);
  }
  return found;
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

/** `const why = error.message` and `({ message: why })` give a sentence another name. */
function otherNames(node: SyntaxNode, names: ReadonlySet<string>): string[] {
  if (node.type === "VariableDeclarator")
    return isSentence(node.init, names) ? [nameOf(node.id)].filter((name) => name !== "") : [];
  if (node.type !== "ObjectPattern") return [];
  return (node.properties as SyntaxNode[])
    .filter(({ key }) => sentenceNames.has(nameOf(key)))
    .map(({ value }) => nameOf(isNode(value) && value.type === "AssignmentPattern" ? value.left : value))
    .filter((name) => name !== "");
}

function readsSentence(node: SyntaxNode, names: ReadonlySet<string>): boolean {
  switch (node.type) {
    case "BinaryExpression":
      return /^[!=]==?$/.test(String(node.operator)) && comparesSentence(node, names);
    case "SwitchStatement":
      return isSentence(node.discriminant, names) && !codeNames.has(nameOf(node.discriminant));
    case "CallExpression": {
      const callee = bare(node.callee);
      const method = callee?.type === "MemberExpression" ? nameOf(callee) : "";
      const [given] = node.arguments as SyntaxNode[];
      return (
        (readsText.has(method) && isSentence(callee?.object, names)) ||
        (readsArgument.has(method) && isSentence(given, names))
      );
    }
    default:
      return false;
  }
}

function comparesSentence({ left, right }: SyntaxNode, names: ReadonlySet<string>): boolean {
  return [
    [left, right],
    [right, left],
  ].some(
    ([one, other]) =>
      isSentence(one, names) && !isNothing(other) && !(codeNames.has(nameOf(one)) && isCode(other)),
  );
}

function isSentence(value: unknown, names: ReadonlySet<string>): boolean {
  const node = bare(value);
  switch (node?.type) {
    case "Identifier":
    case "MemberExpression":
      return (node.type === "Identifier" ? names : sentenceNames).has(nameOf(node));
    case "CallExpression": {
      const callee = bare(node.callee);
      if (callee?.type !== "MemberExpression") return false;
      return makesText.has(nameOf(callee)) && isSentence(callee.object, names);
    }
    case "LogicalExpression":
      return isSentence(node.left, names) || isSentence(node.right, names);
    case "ConditionalExpression":
      return isSentence(node.consequent, names) || isSentence(node.alternate, names);
    default:
      return false;
  }
}

/** `null`, `undefined`, `""` and `typeof …`: whether there is a sentence at all. */
function isNothing(value: unknown): boolean {
  const node = bare(value);
  if (node?.type === "UnaryExpression") return true;
  return (
    nameOf(node) === "undefined" || (node?.type === "Literal" && (node.value === null || node.value === ""))
  );
}

function isCode(value: unknown): boolean {
  const node = bare(value);
  return node?.type === "Literal" && typeof node.value === "string" && /^[\w.-]+$/.test(node.value);
}

/** Of a variable, or of a property that is named in the code; else empty. */
function nameOf(value: unknown): string {
  const node = bare(value);
  if (node?.type === "MemberExpression") return node.computed === true ? "" : nameOf(node.property);
  return node?.type === "Identifier" ? String(node.name) : "";
}

const wrappings: ReadonlySet<string> = new Set([
  "ChainExpression",
  "ParenthesizedExpression",
  "TSAsExpression",
  "TSNonNullExpression",
  "TSSatisfiesExpression",
]);

function bare(value: unknown): SyntaxNode | undefined {
  if (!isNode(value)) return undefined;
  return wrappings.has(value.type) ? bare(value.expression) : value;
}
