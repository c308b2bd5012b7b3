const BEGIN = "<!-- written by scripts/engine-results.mjs: begin -->";
const END = "<!-- written by scripts/engine-results.mjs: end -->";

/** The document with this text between its markers. */
export function replaceTable(document, table) {
  const begin = document.indexOf(BEGIN);
  const end = document.indexOf(END);
  if (begin === -1 || end < begin) throw new Error(`the document has no text between ${BEGIN} and ${END}`);
  return `${document.slice(0, begin)}${BEGIN}\n${table}\n${document.slice(end)}`;
}

/** All that is known of each run, then which tests failed, and why others were skipped. */
export function fullTable(unordered) {
  const results = inOrder(unordered);
  const rows = results.map((result) => [
    titleOf(result),
    `Linux ${result.kernel}, ${result.architecture}`,
    `${result.tests}; ${count(result.files, "file")}`,
    outcome(result),
    `\`${result.runBy}\`, ${result.date}`,
  ]);
  const table = asTable(["engine", "kernel", "tests", "result", "run by"], rows);
  return [table, ...results.flatMap(notes)].join("\n\n");
}

function inOrder(results) {
  return results.toSorted((a, b) => titleOf(a).localeCompare(titleOf(b), "en", { numeric: true }));
}

function titleOf({ engine, runtime, cgroupVersion, rootless }) {
  return `${engine}${rootless ? " rootless" : ""}, ${runtime}, cgroup v${cgroupVersion}`;
}

function outcome({ passed, failed, skipped }) {
  const left = skipped.reduce((sum, { tests }) => sum + tests, 0);
  return `${passed} passed, ${failed.length} failed, ${left} skipped`;
}

function notes(result) {
  const title = titleOf(result);
  return [
    ...listed(`Failed on ${title}:`, result.failed),
    ...listed(
      `Skipped on ${title}:`,
      result.skipped.map(({ reason, tests }) => `${reason} (${count(tests, "test")})`),
    ),
  ];
}

function listed(heading, lines) {
  return lines.length === 0 ? [] : [[heading, "", ...lines.map((line) => `- ${line}`)].join("\n")];
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function asTable(head, rows) {
  return [head, head.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n")
    .replaceAll("| --- ", "|---")
    .replaceAll("--- |", "---|");
}
