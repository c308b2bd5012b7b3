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
