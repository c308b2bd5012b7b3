const START = ">>>>> Start Test Output";
const END = ">>>>> End Test Output";
const HEADER = ["#!/bin/bash", "set -uxo pipefail"];

/**
 * The evaluation script as the format's harness runs it: it also prints the exit code of the tests' command, which
 * grading compares with the log. Null if it prints no markers around the output of the tests.
 */
export function recordedEvalScript(script: string): string | null {
  if (!script.includes(START) || !script.includes(END)) return null;
  const lines = script
    .trim()
    .split("\n")
    .filter((line) => !HEADER.includes(line));
  const end = lines.findIndex((line) => line.includes(END));
  const recorded = [
    ...lines.slice(0, end),
    "SWEBENCH_TEST_EXIT_CODE=$?",
    ...lines.slice(end, end + 1),
    'echo ">>>>> Test Exit Code: $SWEBENCH_TEST_EXIT_CODE"',
    ...lines.slice(end + 1),
  ];
  return `${[...HEADER, ...recorded].join("\n")}\n`;
}
