import { parseAst } from "rolldown/parseAst";

/**
 * Where a call can be put without changing what the code does: before each statement of a function, and before each value that is chosen.
 * `file` says which language it is.
 */
export function placesIn(source, file = "a.ts") {
  const places = [];
  const add = (node, how) => places.push({ start: node.start, end: node.end, how });
  visit(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }), false, (node, isInFunction) => {
    if (node.type === "ArrowFunctionExpression" && node.expression) add(node.body, "value");
    if (!isInFunction) return;
    if (node.type === "BlockStatement") for (const one of statements(node.body)) add(one, "before");
    if (node.type === "SwitchCase") for (const one of statements(node.consequent)) add(one, "before");
    if (node.type === "ConditionalExpression")
      for (const one of [node.consequent, node.alternate]) add(one, "value");
    for (const one of [node.consequent, node.alternate, node.body])
      if (isAlone(one) && !node.type.startsWith("Conditional")) add(one, "block");
  });
  return places.sort((a, b) => a.start - b.start || b.end - a.end);
}

/** The source with a call at each place, in the same lines as before. `nameOf` says what is called for the place with an index. */
export function withMarks(source, nameOf, file = "a.ts") {
  const inserted = placesIn(source, file).flatMap(({ start, end, how }, index) => {
    const call = nameOf(index);
    if (how === "before") return [{ at: start, text: `${call};`, isEnd: false }];
    const [open, close] = how === "block" ? [`{${call};`, "}"] : [`(${call},(`, "))"];
    return [
      { at: start, text: open, isEnd: false },
      { at: end, text: close, isEnd: true },
    ];
  });
  // Of those at the same place the outer one begins first, and what ends there is closed before anything begins.
  const ordered = inserted.map((one, order) => ({ ...one, order }));
  ordered.sort((a, b) => a.at - b.at || Number(b.isEnd) - Number(a.isEnd) || a.order - b.order);
  let marked = "";
  let last = 0;
  for (const { at, text } of ordered) {
    marked += source.slice(last, at) + text;
    last = at;
  }
  return marked + source.slice(last);
}

/** The text of the line that a place begins in, by which it is known again when something else in its file changes. */
export function lineAt(source, offset) {
  const start = source.lastIndexOf("\n", offset - 1) + 1;
  const end = source.indexOf("\n", offset);
  return source.slice(start, end === -1 ? undefined : end).trim();
}

function visit(node, isInFunction, onNode) {
  if (node.type.startsWith("TS") && !/^TS(?:As|NonNull|Satisfies)/.test(node.type)) return;
  onNode(node, isInFunction);
  const isFunction = /^(?:Arrow)?Function/.test(node.type);
  for (const child of Object.values(node))
    for (const one of Array.isArray(child) ? child : [child])
      if (typeof one?.type === "string") visit(one, isInFunction || isFunction, onNode);
}

/** Declarations of types and functions are not run where they stand, and directives have to come first. */
function statements(nodes) {
  return nodes.filter(
    ({ type, directive }) => !type.startsWith("TS") && type !== "FunctionDeclaration" && !directive,
  );
}

/** A statement without braces. `else if` gets some as well. */
function isAlone(node) {
  return typeof node?.type === "string" && /Statement$/.test(node.type) && node.type !== "BlockStatement";
}
