/** A fault: `text` instead of what is between two places of a file. */
export function mutant({ file, source, start, end, text, kind }) {
  const line = source.slice(0, start).split("\n").length;
  return { file, line, start, end, text, kind, before: source.slice(start, end) };
}

export function applied(source, { start, end, text }) {
  return source.slice(0, start) + text + source.slice(end);
}

/** What an operator becomes: mostly its neighbour, which only a test at the edge tells from it. */
export const OTHER_OPERATOR = {
  "===": "!==",
  "!==": "===",
  "==": "!=",
  "!=": "==",
  "<": "<=",
  "<=": "<",
  ">": ">=",
  ">=": ">",
  "+": "-",
  "-": "+",
  "*": "/",
  "/": "*",
  "%": "*",
  "&&": "||",
  "||": "&&",
  "&": "|",
  "|": "&",
  "<<": ">>",
  ">>": "<<",
};
