import { differences } from "./differences.js";

/** A unified diff from one text to another, with so many lines of context, as `diff -u` prints it. */
export function unifiedDiff(before: string, after: string, context: number): string {
  const changes = differences(linesOf(before), linesOf(after));
  const changed = changes.flatMap(({ kind }, at) => (kind === "context" ? [] : [at]));
  const hunks: { start: number; end: number }[] = [];
  for (const at of changed) {
    const start = Math.max(0, at - context);
    const end = Math.min(changes.length, at + context + 1);
    const last = hunks.at(-1);
    if (last !== undefined && start <= last.end) last.end = end;
    else hunks.push({ start, end });
  }
  const printed = hunks.map(({ start, end }) => {
    const [old, fresh] = [counts(changes.slice(0, start)), counts(changes.slice(start, end))];
    const body = changes.slice(start, end).map(({ kind, text }) => `${signs[kind]}${text}`);
    // A hunk without lines on one side names the line before it.
    const oldStart = old.before + (fresh.before === 0 ? 0 : 1);
    const newStart = old.after + (fresh.after === 0 ? 0 : 1);
    return [`@@ -${oldStart},${fresh.before} +${newStart},${fresh.after} @@`, ...body].join("\n");
  });
  return ["--- a/f", "+++ b/f", ...printed, ""].join("\n");
}

const signs = { context: " ", add: "+", remove: "-" };

/** Lines; a last one that nothing ends carries the note that says so. */
function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  const last = lines.pop();
  return last === "" ? lines : [...lines, `${last}\n\\ No newline at end of file`];
}

function counts(changes: readonly { kind: string }[]) {
  return {
    before: changes.filter(({ kind }) => kind !== "add").length,
    after: changes.filter(({ kind }) => kind !== "remove").length,
  };
}
