import { describe, expect, it } from "vitest";
import { loadScript, parseScript } from "../../../../../src/agent/model/script/script.js";

function failureOf(yaml: string) {
  try {
    parseScript(yaml, "play.yaml");
  } catch (error) {
    return error;
  }
  return undefined;
}

describe("parseScript", () => {
  it("reads texts, calls and expectations, and keeps their lines", () => {
    const script = parseScript(
      `# a comment
steps:
  - text: I look around.
    calls:
      - exec_command: { cmd: ls }
      - apply_patch: |
          *** Begin Patch
  - expect:
      - exitCode: 0
        contains: one
      - { contains: [a, b], notContains: c, matches: "^x(?<n>\\\\d+)$" }
    text: Done.
`,
      "play.yaml",
    );
    expect(script.steps).toMatchObject([
      {
        line: 3,
        text: "I look around.",
        calls: [
          { tool: "exec_command", args: { cmd: "ls" } },
          { tool: "apply_patch", args: "*** Begin Patch\n" },
        ],
      },
      {
        line: 8,
        expectLines: [9, 11],
        expect: [
          { exitCode: 0, contains: ["one"] },
          { contains: ["a", "b"], notContains: ["c"] },
        ],
      },
    ]);
    expect(script.steps[1]?.expect?.[1]?.matches).toEqual(/^x(?<n>\d+)$/mu);
  });

  const steps = (text: string) => `steps:\n${text}`;

  it.each([
    ["YAML that does not parse", "steps:\n  - text: [oops\n", /^play\.yaml:3:1: /],
    ["a key given twice", "steps:\n  - text: a\n    text: b\n", /^play\.yaml:3:5: Map keys must be unique/],
    ["an empty file", "", /^play\.yaml:1:1: the script: /],
    ["a script without steps", "steps: []\n", /^play\.yaml:1:8: steps: /],
    [
      "an unknown key",
      steps("  - txt: hello\n"),
      /^play\.yaml:2:5: unknown key `txt` \(did you mean `text`\?\)$/,
    ],
    [
      "an unknown key in an expectation",
      steps("  - calls: [{shell: {}}]\n  - expect: { contain: a }\n    text: b\n"),
      /^play\.yaml:3:15: unknown key `contain` \(did you mean `contains`\?\)$/,
    ],
    [
      "a wrong type",
      steps("  - text: 7\n"),
      /^play\.yaml:2:11: steps 1 text: Invalid input: expected string/,
    ],
    ["a step that does nothing", steps("  - {}\n"), /^play\.yaml:2:5: steps 1: has neither text nor calls$/],
    [
      "a call of two tools",
      steps("  - calls: [{shell: {}, exec_command: {}}]\n"),
      /^play\.yaml:2:13: steps 1 calls 1: is `tool: arguments`, one tool to a call$/,
    ],
    [
      "an expectation of nothing",
      steps("  - calls: [{shell: {}}]\n  - expect: {}\n    text: a\n"),
      /^play\.yaml:3:13: steps 2 expect: expects nothing$/,
    ],
    [
      "a regular expression that is none",
      steps('  - calls: [{shell: {}}]\n  - expect: { matches: "(" }\n    text: a\n'),
      /^play\.yaml:3:24: steps 2 expect matches: Invalid regular expression/,
    ],
    [
      "a last step that calls something",
      steps("  - calls: [{shell: {}}]\n"),
      /^play\.yaml:2:5: the last step must not call a tool/,
    ],
    [
      "a step after the end",
      steps("  - text: a\n  - text: b\n"),
      /^play\.yaml:3:5: this step is never reached/,
    ],
    [
      "an expectation without a call before it",
      steps("  - expect: { contains: a }\n    text: b\n"),
      /^play\.yaml:2:5: expects 1 output\(s\), but the previous step makes 0 call\(s\)$/,
    ],
  ])("refuses %s and says where", (_, yaml, message) => {
    const error = failureOf(yaml);
    expect(error).toMatchObject({ code: "config.invalid" });
    expect((error as Error).message).toMatch(message);
  });

  it("takes steps after one that calls nothing where there are many turns", () => {
    const yaml = "steps:\n  - text: One.\n  - text: Two.\n";
    expect(parseScript(yaml, "play.yaml", { hasManyTurns: true }).steps).toHaveLength(2);
    expect(() => parseScript(yaml, "play.yaml")).toThrow("play.yaml:3:5: this step is never reached");
  });
});

describe("loadScript", () => {
  it("says when there is no such file", async () => {
    await expect(loadScript("/proc/nonexistent/play.yaml")).rejects.toMatchObject({
      code: "config.invalid",
      message: "cannot read the script /proc/nonexistent/play.yaml: no such file",
    });
  });
});
