import { describe, expect, it } from "vitest";
import { screenApprover } from "../../../../src/cli/conversation/ask-on-screen.js";
import { PendingQuestions, type Question } from "../../../../src/cli/conversation/question.js";
import type { Block } from "../../../../src/cli/conversation/screen/block.js";
import { approvalRequest } from "../../../support/approval-request.js";

const request = (script: string) => approvalRequest({ argv: ["bash", "-lc", script] });

/** What stands beside the choice. */
async function askedAbout(script: string): Promise<{ beside: string[]; above: Block[] }> {
  const shown: (Question | null)[] = [];
  const above: Block[] = [];
  const questions = new PendingQuestions(
    (question) => shown.push(question),
    () => 0,
  );
  const approver = screenApprover({ questions, show: (block) => above.push(block), columns: () => 80 });
  const answer = approver.ask(request(script), { signal: undefined });
  questions.answer({ kind: "dismissed" });
  expect(await answer).toBe("abort");
  return { beside: shown[0]?.lines.map(({ text }) => text) ?? [], above };
}

describe("the choice on the screen", () => {
  it("has what is asked about beside it, since a model may put a question of its own in between", async () => {
    expect((await askedAbout("git push --force")).beside).toEqual(["Run it?", "  │ git push --force"]);
  });

  it("has no more than the beginning beside it, and says where the rest is", async () => {
    const { beside, above } = await askedAbout("one\ntwo\nthree\nfour\nfive");
    expect(beside).toEqual([
      "Run it?",
      "  │ one",
      "  │ two",
      "  │ three",
      "  ⋮ and 2 more rows, shown above",
    ]);
    expect(JSON.stringify(above[0])).toContain("│ five");
  });
});
