import { describe, expect, it } from "vitest";
import { terminalUser } from "../../../../src/cli/questions/ask-user.js";
import { testContext } from "../../../support/cli-context.js";

const options = [
  { label: "Now", description: "at once" },
  { label: "Later", description: "tomorrow" },
];
const questions = [
  { id: "when", header: "When", question: "When shall I\u001b[2J start?", options },
  { id: "why", header: "Why", question: "And why?", options },
];

describe("a person at a terminal", () => {
  it("answers with the number of a choice or in words of their own, an empty line not counting", async () => {
    const context = testContext();
    const answers = terminalUser(context).ask(questions, {});
    context.stdin.write("\n2\nbecause\n");
    expect(await answers).toEqual({ when: ["Later"], why: ["because"] });
    const { stderr, stdout } = context.written();
    expect(stderr).toContain("1. Now – at once\n  2. Later – tomorrow\n");
    expect(stderr).not.toContain("\u001b");
    expect(stdout).toBe("");
  });

  it("takes a number that no choice has as it is", async () => {
    const context = testContext();
    context.stdin.write("3\n0\n");
    expect(await terminalUser(context).ask(questions, {})).toEqual({ when: ["3"], why: ["0"] });
  });

  it("refuses to answer with the end of the input", async () => {
    const context = testContext();
    context.stdin.end("1\n");
    expect(await terminalUser(context).ask(questions, {})).toBeNull();
  });

  it("refuses to answer with Escape, but not with an arrow key", async () => {
    const context = testContext();
    context.stdin.write("\u001b[D\n\u001b\n");
    expect(await terminalUser(context).ask(questions, {})).toBeNull();
    const again = testContext();
    again.stdin.write("\u001b[D\n2\n");
    expect(await terminalUser(again).ask(questions, {})).toEqual({ when: ["\u001b[D"], why: ["Later"] });
  });

  it("does not answer by what was typed before the question was shown", async () => {
    const context = testContext();
    Object.assign(context.stdin, { isTTY: true });
    context.stdin.write("1\n1\n");
    const answers = terminalUser(context).ask(questions, {});
    await expect.poll(() => context.written().stderr).toContain("Type a number");
    context.stdin.write("2\nbecause\n");
    expect(await answers).toEqual({ when: ["Later"], why: ["because"] });
  });

  it("is not waited for any longer after an abort", async () => {
    const stop = new AbortController();
    const answers = terminalUser(testContext()).ask(questions, { signal: stop.signal });
    stop.abort(new Error("stopped"));
    await expect(answers).rejects.toThrow("stopped");
  });
});
