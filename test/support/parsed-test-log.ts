import { expect } from "vitest";
import { parseTestLog, type TestLogParser } from "../../src/batch/tasks/parsers/parse-test-log.js";

/** The statuses that the parser finds, as an object. */
export function parsed(parser: TestLogParser, log: string | readonly string[]): Record<string, string> {
  const found = parseTestLog(parser, typeof log === "string" ? log : log.join("\n"));
  expect(found.kind).toBe("parsed");
  return found.kind === "parsed" ? Object.fromEntries(found.statuses) : {};
}
