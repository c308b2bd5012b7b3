import { expect, it } from "vitest";
import { quickCall } from "../../../../src/cli/lasting/quick-exec.js";

const usual = { sandbox: "one", argv: ["true"], cwd: null, env: {}, takesInput: false };

it.each([
  [["exec", "--in", "one", "true"], usual],
  [["exec", "--in", "one", "--", "true"], usual],
  [["exec", "--in", "one", "-i", "--", "cat", "-n"], { ...usual, argv: ["cat", "-n"], takesInput: true }],
  [
    ["exec", "-C", "/d", "--in", "one", "-e", "A=b=c", "--env", "B=", "true"],
    { ...usual, cwd: "/d", env: { A: "b=c", B: "" } },
  ],
  [["exec", "--in", "one", "--", "sh", "--in", "two"], { ...usual, argv: ["sh", "--in", "two"] }],
])("%j is a call that needs little code", (argv, call) => {
  expect(quickCall(argv)).toEqual(call);
});

it.each([
  [["exec", "--", "true", "--in", "one"]],
  [["exec", "--in", "one"]],
  [["exec", "--in", "one", "--"]],
  [["exec", "--in", "one", "--", ""]],
  [["exec", "--in"]],
  [["exec", "--in", "", "--", "true"]],
  [["exec", "--in", "one", "-t", "--", "sh"]],
  [["exec", "--in", "one", "-it", "--", "sh"]],
  [["exec", "--in", "one", "-d", "--", "sh"]],
  [["exec", "--in", "one", "--json", "--", "true"]],
  [["exec", "--in", "one", "-s", "read-only", "--", "true"]],
  [["exec", "--in", "one", "-e", "novalue", "--", "true"]],
  [["exec", "--in", "one", "-e", "=value", "--", "true"]],
  [["exec", "--in", "one", "-C", "--", "true"]],
  [["exec", "--in", "one", "--help"]],
  [["shell", "--in", "one", "--", "true"]],
  [[]],
])("%j is for the whole program", (argv) => {
  expect(quickCall(argv)).toBeNull();
});
