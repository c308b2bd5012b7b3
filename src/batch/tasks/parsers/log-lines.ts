/** No name of a test with its status is longer. Of longer lines, only the beginning is read. */
const MAX_LINE_CHARACTERS = 16 * 1024;

/** The lines of a log, ended by `\n`, `\r\n` or `\r`. Does not hold them all at once. */
export function* linesOf(log: string): Generator<string> {
  const ending = /\r\n?|\n/g;
  let from = 0;
  for (;;) {
    const end = ending.exec(log);
    const to = end?.index ?? log.length;
    yield log.slice(from, Math.min(to, from + MAX_LINE_CHARACTERS));
    if (end === null) return;
    from = ending.lastIndex;
  }
}

/** Splits a line at white space. */
export function wordsOf(line: string): string[] {
  return line.split(/\s+/).filter((word) => word !== "");
}

/** Cuts off a suffix that the pattern, which ends in `$`, finds in the last characters. */
export function withoutSuffix(text: string, suffix: RegExp): string {
  const start = Math.max(0, text.length - 64);
  const found = text.slice(start).search(suffix);
  return found < 0 ? text : text.slice(0, start + found);
}

/** The number of white space characters at the beginning. */
export function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

/** Result reported by a test program. A test that was expected to fail, and did, is "xfailed". */
export type TestStatus = "passed" | "failed" | "skipped" | "error" | "xfailed";

/** Output with more tests is not believed: no program has as many, but hostile output can have any number. */
const MAX_TESTS = 200_000;

/** Tests by their names, as a parser finds them. The last status of a test counts. */
export class FoundTests {
  readonly #statuses = new Map<string, TestStatus>();
  #hasTooMany = false;

  get statuses(): ReadonlyMap<string, TestStatus> {
    return this.#statuses;
  }

  get hasTooMany(): boolean {
    return this.#hasTooMany;
  }

  set(name: string, status: TestStatus): void {
    if (this.#statuses.size < MAX_TESTS || this.#statuses.has(name)) this.#statuses.set(name, status);
    else this.#hasTooMany = true;
  }
}

/**
 * Takes time in proportion to the length of the output, whatever it contains: patterns whose repetitions can match
 * the same characters are applied to a bounded number of them only.
 */
export type LogParser = (log: string, found: FoundTests) => void;

/**
 * Reads output in which each line that the pattern matches is a test: its groups `word` and `name` are how the test ended and what it
 * is called.
 */
export function testInEachLine(
  pattern: RegExp,
  statuses: Readonly<Record<string, TestStatus>>,
  nameOf: (name: string, status: TestStatus) => string = (name) => name,
): LogParser {
  return (log, found) => {
    for (const line of linesOf(log)) {
      const { word = "", name = "" } = pattern.exec(line.trim())?.groups ?? {};
      const status = statuses[word];
      if (status !== undefined) found.set(nameOf(name, status), status);
    }
  };
}
