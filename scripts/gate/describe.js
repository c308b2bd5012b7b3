/** How many files of a kind are named. */
const NAMED = 4;

/** What runs and why, in about ten lines. */
export function describeSelection(change, { all, reasons, parts, unused }) {
  const since =
    change === null
      ? "an unknown commit"
      : `${change.commit.slice(0, 12)}: ${count(change.paths.length, "file")}`;
  const lines = [`changed since ${since}`, `always: lint, types, build, all unit tests, npm run demo`];
  const byReason = grouped(reasons);
  const rows = [...byReason].sort(([, a], [, b]) => b.length - a.length);
  for (const [reason, tests] of rows.slice(0, 6))
    lines.push(`${count(tests.length, "test file")}: ${reason}${some(tests)}`);
  const others = rows.slice(6).flatMap(([, tests]) => tests);
  if (others.length > 0)
    lines.push(`${count(others.length, "test file")}: use other files that have changed${some(others)}`);
  lines.push(`${reasons.size} of ${count(all.length, "test file")} with containers or whole programs run`);
  lines.push(
    `parts: ${parts.map(({ name }) => name).join(", ") || "none; npm run test:all has all of them"}`,
  );
  if (unused.length > 0)
    lines.push(
      `used by no test with containers or whole programs: ${count(unused.length, "file")}${some(unused)}`,
    );
  return `${lines.join("\n")}\n`;
}

function grouped(reasons) {
  const groups = new Map();
  for (const [test, reason] of reasons) groups.set(reason, [...(groups.get(reason) ?? []), test]);
  return groups;
}

function some(names) {
  const shown = names.slice(0, NAMED).map((name) => name.replace(/^test\/|\.test\.ts$/g, ""));
  return ` (${shown.join(", ")}${names.length > NAMED ? ", …" : ""})`;
}

function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
