import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAst } from "rolldown/parseAst";
import { root } from "../setup/run.js";
import { mutant, OTHER_OPERATOR } from "./mutant.js";

/** A word that code compares or hands on, and no sentence for people, whose wording no test has to fix. */
const WORD = /^[a-zA-Z][\w.:/-]*$/;

/** All faults for the TypeScript files below a directory. */
export async function sourceMutants(place) {
  const entries = await readdir(join(root, place), { recursive: true });
  const found = [];
  for (const name of entries.filter((one) => one.endsWith(".ts")).sort()) {
    const file = `${place}/${name}`;
    found.push(...mutantsOf(file, await readFile(join(root, file), "utf8")));
  }
  return found;
}

export function mutantsOf(file, source) {
  const found = [];
  const add = (node, text, kind) =>
    found.push(mutant({ file, source, start: node.start, end: node.end, text, kind }));
  /** One more in them is the same fault as the other operator: `x < 2` and `x <= 1`. */
  const bounds = new Set();
  visit(parseAst(source, { lang: "ts" }), (node) => {
    if (node.type === "BinaryExpression" && ["<", ">="].includes(node.operator)) bounds.add(node.right);
    if (node.type === "Literal" && typeof node.value === "number" && bounds.has(node)) return;
    for (const { of = node, text, kind } of faults(node, source)) add(of, text, kind);
  });
  return found;
}

/** What is only there for the compiler, and what says where other files are, gets no faults. */
function isForCompiler({ type }) {
  if (["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression"].includes(type)) return false;
  return type.startsWith("TS") || type.startsWith("Import") || type.startsWith("ExportAll");
}

function visit(node, onNode) {
  if (isForCompiler(node)) return;
  onNode(node);
  for (const [key, child] of Object.entries(node)) {
    if (["typeAnnotation", "returnType", "typeParameters", "typeArguments"].includes(key)) continue;
    for (const one of Array.isArray(child) ? child : [child])
      if (typeof one === "object" && one !== null && typeof one.type === "string") visit(one, onNode);
  }
}

function faults(node, source) {
  const text = ({ start, end }) => source.slice(start, end);
  switch (node.type) {
    case "BinaryExpression":
    case "LogicalExpression": {
      const other = OTHER_OPERATOR[node.operator];
      if (node.operator === "??") return [{ text: text(node.left), kind: "without ??" }];
      if (other === undefined) return [];
      const between = { start: node.left.end, end: node.right.start };
      const replaced = text(between).replace(node.operator, other);
      return [{ of: between, text: replaced, kind: `${node.operator} becomes ${other}` }];
    }
    case "UnaryExpression":
      return node.operator === "!" ? [{ text: text(node.argument), kind: "without !" }] : [];
    case "IfStatement":
    case "ConditionalExpression":
      return ["true", "false"].map((value) => ({
        of: node.test,
        text: value,
        kind: `the condition is ${value}`,
      }));
    case "Literal":
      return literalFaults(node);
    case "ArrayExpression":
      return node.elements.length > 0 ? [{ text: "[]", kind: "an empty array" }] : [];
    case "ReturnStatement":
      return node.argument ? [{ text: "return undefined;", kind: "returns nothing" }] : [];
    case "ExpressionStatement":
      return node.directive ? [] : [{ text: ";", kind: "the statement is left out" }];
    case "ThrowStatement":
      return [{ text: ";", kind: "does not throw" }];
    default:
      return [];
  }
}

function literalFaults({ value }) {
  if (typeof value === "boolean") return [{ text: String(!value), kind: `${value} becomes ${!value}` }];
  if (typeof value === "number") return [{ text: String(value + 1), kind: `${value} becomes ${value + 1}` }];
  if (typeof value === "string" && WORD.test(value)) return [{ text: '""', kind: `"${value}" is empty` }];
  return [];
}
