const contextLines = 3;

/** The differences between two trees, each a map from path to text, in the format of `diff -u`. Empty if there are none. */
export function diffTrees(before, after) {
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths
    .filter((path) => before.get(path) !== after.get(path))
    .map((path) => diffFile(path, before.get(path), after.get(path)))
    .join("");
}

function diffFile(path, before, after) {
  const from = before === undefined ? "/dev/null" : `a/${path}`;
  const to = after === undefined ? "/dev/null" : `b/${path}`;
  const edits = lineEdits(linesOf(before ?? ""), linesOf(after ?? ""));
  return `--- ${from}\n+++ ${to}\n${hunksOf(edits).map(printHunk).join("")}`;
}

function linesOf(text) {
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

/** The shortest list of edits between two lists of lines, by their longest common subsequence. */
function lineEdits(from, to) {
  const common = Array.from({ length: from.length + 1 }, () => new Uint32Array(to.length + 1));
  for (let row = from.length - 1; row >= 0; row--) {
    for (let column = to.length - 1; column >= 0; column--) {
      common[row][column] =
        from[row] === to[column]
          ? common[row + 1][column + 1] + 1
          : Math.max(common[row + 1][column], common[row][column + 1]);
    }
  }
  const edits = [];
  let row = 0;
  let column = 0;
  while (row < from.length || column < to.length) {
    if (row < from.length && column < to.length && from[row] === to[column]) {
      edits.push({ sign: " ", line: from[row], row: row++, column: column++ });
    } else if (
      column === to.length ||
      (row < from.length && common[row + 1][column] >= common[row][column + 1])
    ) {
      edits.push({ sign: "-", line: from[row], row: row++, column });
    } else {
      edits.push({ sign: "+", line: to[column], row, column: column++ });
    }
  }
  return edits;
}

/** Groups changed lines with the lines around them. Groups that touch become one hunk. */
function hunksOf(edits) {
  const hunks = [];
  for (const [index, { sign }] of edits.entries()) {
    if (sign === " ") continue;
    const last = hunks.at(-1);
    const start = Math.max(0, index - contextLines);
    if (last !== undefined && start <= last.end) last.end = index + contextLines + 1;
    else hunks.push({ start, end: index + contextLines + 1 });
  }
  return hunks.map(({ start, end }) => edits.slice(start, end));
}

function printHunk(edits) {
  const removed = edits.filter(({ sign }) => sign !== "+").length;
  const added = edits.filter(({ sign }) => sign !== "-").length;
  const [{ row, column }] = edits;
  const header = `@@ -${position(row, removed)} +${position(column, added)} @@`;
  return [header, ...edits.map(({ sign, line }) => sign + line)].join("\n").concat("\n");
}

function position(start, length) {
  return `${length === 0 ? start : start + 1},${length}`;
}
