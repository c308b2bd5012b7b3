// What a change of the sources touches: which places that were there before it, and, where it is outside of all functions, which names.
import { dirname, join } from "node:path";
import { diffArrays } from "diff";
import { parseSync } from "rolldown/utils";
import { placesIn } from "./marks.js";

/** A source file, read once: without comments and types, which change nothing that runs, in as many characters as before. */
export class Source {
  file;
  places;
  program;
  text;
  #functions = [];

  constructor(file, text) {
    const { program, comments } = parseSync(file, text);
    this.file = file;
    this.program = program;
    this.places = placesIn(text, file);
    this.text = blanked(text, [...comments, ...typesIn(program, this.#functions)]);
  }

  /** Statements outside of all functions, without imports, which say only where something is. */
  get statements() {
    return this.program.body
      .filter(({ type, source, specifiers }) => !isOnlyNaming({ type, source, specifiers }))
      .map(({ start, end, declaration, ...node }) => ({
        start,
        end,
        names: namesOf(declaration ?? node),
        text: this.text.slice(start, end).replace(/\s+/g, " ").trim(),
        isFunction: isFunctionAlone(declaration ?? node),
        isClass: (declaration ?? node).type === "ClassDeclaration",
      }))
      .filter(({ text }) => text !== "");
  }

  /** Which places run what stands there: the innermost, or all of the function whose first line it is. None where nothing but loading runs it. */
  placesAt(offset) {
    const inner = this.places.findLastIndex(({ start, end }) => start <= offset && offset < end);
    const around = this.#functions.findLast(({ start, end }) => start <= offset && offset < end);
    if (inner !== -1 && (around === undefined || around.start <= this.places[inner].start)) return [inner];
    return around === undefined ? [] : this.placesFrom(around);
  }

  placesFrom({ start, end }) {
    return this.places.flatMap((place, index) => (place.start >= start && place.end <= end ? [index] : []));
  }

  /**
   * What it takes from other files (named without their extensions), as it is called there ("*" for everything) and here. `local` is null for what is only passed on, and `start` is
   * where a file is loaded later.
   */
  get imports() {
    const found = [];
    visit(this.program, ({ type, source, specifiers = [], start, exported }) => {
      const from = source?.value;
      if (typeof from !== "string" || !from.startsWith(".")) return;
      const file = join(dirname(this.file), from).replace(/\.js$/, "");
      if (type === "ImportExpression") found.push({ file, name: "*", local: null, start });
      if (type === "ExportAllDeclaration")
        found.push({ file, name: "*", local: null, exported: exported?.name ?? "*" });
      for (const one of specifiers) {
        const name = one.imported?.name ?? one.local.name;
        const isAll = one.type === "ImportNamespaceSpecifier";
        if (type === "ImportDeclaration")
          found.push({ file, name: isAll ? "*" : name, local: one.local.name });
        else found.push({ file, name: one.local.name, local: null, exported: one.exported.name });
      }
    });
    return found;
  }

  /** Where these names are used. */
  usesOf(names) {
    const found = [];
    visit(this.program, (node, parent) => {
      if (isType(node) || node.type === "ImportDeclaration") return false;
      if (node.type !== "Identifier" || !names.has(node.name)) return true;
      const isMember = parent?.type === "MemberExpression" && parent.property === node && !parent.computed;
      const isKey =
        parent?.type === "Property" && parent.key === node && !parent.computed && !parent.shorthand;
      if (!isMember && !isKey) found.push(node.start);
      return true;
    });
    return found;
  }
}

/**
 * The places of `before` that a change touches, by their indexes, and the names outside of functions whose values it changes. What is only added
 * touches nothing: something else must have been changed for it to run.
 */
export function touchedBy(before, after) {
  const places = new Set();
  const names = new Set();
  const unchanged = countsOf(after.statements.map(({ text }) => text));
  const missing = before.statements.filter(({ text }) => !take(unchanged, text));
  for (const statement of missing) {
    const partner = after.statements.find((one) => hasSameNames(one, statement));
    const touch = (offset) => {
      const found = before.placesAt(offset);
      for (const index of found) places.add(index);
      if (found.length > 0) return;
      // The first line of a function that is not inside of anything.
      const inFunction = statement.isFunction ? before.placesFrom(statement) : [];
      for (const index of inFunction) places.add(index);
      if (inFunction.length === 0) touchWhole(statement, before, { places, names });
    };
    if (partner === undefined) touchWhole(statement, before, { places, names });
    else for (const offset of changedLines(lines(before, statement), lines(after, partner))) touch(offset);
  }
  return { places, names };
}

/** A value that functions use outside of it, and the functions in it. */
function touchWhole(statement, source, { places, names }) {
  for (const index of source.placesFrom(statement)) places.add(index);
  for (const name of statement.names) names.add(name);
}

/** Where lines begin that are not there any more, and those on both sides of what was put in. */
function changedLines(before, after) {
  const touched = new Set();
  let at = 0;
  let isReplaced = false;
  for (const { added, removed, count } of diffArrays(textsOf(before), textsOf(after))) {
    if (removed) for (let index = at; index < at + count; index++) touched.add(before[index].start);
    if (added && !isReplaced)
      for (const line of [before[at - 1], before[at]]) if (line) touched.add(line.start);
    isReplaced = removed;
    if (!added) at += count;
  }
  return touched;
}

function textsOf(list) {
  return list.map(({ text }) => text);
}

/** Those with anything in them, and where it begins. */
function lines({ text }, { start, end }) {
  const found = [];
  for (const match of text.slice(start, end).matchAll(/[^\n]+/g)) {
    const line = match[0].trim();
    if (line !== "") found.push({ text: line, start: start + match.index + match[0].indexOf(line[0]) });
  }
  return found;
}

function hasSameNames(one, other) {
  return other.names.length > 0 && one.names.join() === other.names.join() && one.isClass === other.isClass;
}

function isOnlyNaming({ type, source, specifiers }) {
  if (type === "ImportDeclaration") return specifiers.length > 0;
  return (
    (type === "ExportNamedDeclaration" && specifiers.length > 0) ||
    (type === "ExportAllDeclaration" && source)
  );
}

/** A declared function, or a constant that is one. */
function isFunctionAlone({ type, declarations }) {
  return type === "FunctionDeclaration" || (declarations?.length === 1 && isFunction(declarations[0].init));
}

function namesOf(node) {
  if (node.type === "VariableDeclaration") return node.declarations.flatMap(({ id }) => boundNames(id));
  return node.id?.name === undefined ? [] : [node.id.name];
}

function boundNames(pattern) {
  const found = [];
  visit(pattern, (node) => {
    if (node.type === "Identifier") found.push(node.name);
  });
  return found;
}

function countsOf(texts) {
  const counts = new Map();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

function take(counts, text) {
  const count = counts.get(text) ?? 0;
  counts.set(text, count - 1);
  return count > 0;
}

function blanked(text, ranges) {
  const characters = text.split("");
  for (const { start, end } of ranges)
    for (let at = start; at < end; at++) if (characters[at] !== "\n") characters[at] = " ";
  return characters.join("");
}

/** Where types stand, of which nothing is left when the code runs; and, on the way, all functions. */
function typesIn(program, functions) {
  const found = [];
  visit(program, (node) => {
    if (isFunction(node) || isFunction(node.value)) functions.push({ start: node.start, end: node.end });
    if (isType(node)) found.push(node);
  });
  functions.sort((a, b) => a.start - b.start);
  return found;
}

function isFunction(node) {
  return /^(?:ArrowFunctionExpression|FunctionDeclaration|FunctionExpression)$/.test(node?.type);
}

function isType({ type, importKind, exportKind }) {
  const isTypeNode = type.startsWith("TS") && !/^TS(?:As|NonNull|Satisfies|Instantiation)/.test(type);
  return isTypeNode || importKind === "type" || exportKind === "type";
}

/** The inside of a node is left out if `onNode` answers false. */
function visit(node, onNode, parent = null) {
  if (onNode(node, parent) === false) return;
  for (const child of Object.values(node))
    for (const one of Array.isArray(child) ? child : [child])
      if (typeof one?.type === "string") visit(one, onNode, node);
}
