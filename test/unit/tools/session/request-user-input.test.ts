import { describe, expect, it } from "vitest";
import { createToolRegistry } from "../../../../src/tools/registry.js";
import type { AskedUser } from "../../../../src/tools/session/request-user-input.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const options = [{ label: "Yes", description: "Do it" }];
const question = { id: "go", header: "Go?", question: "Shall I?", options };

async function ask(user: AskedUser | undefined, questions: readonly object[] = [question]) {
  const tools = createToolRegistry(new MemorySandbox(), { cwd: "/tmp", user });
  return await tools.get("request_user_input" as string).execute({ questions });
}

describe("request_user_input", () => {
  it("gives the answers by the questions' ids", async () => {
    const user: AskedUser = {
      ask: (questions) => Promise.resolve(Object.fromEntries(questions.map(({ id }) => [id, ["Yes"]]))),
    };
    expect(await ask(user, [question, { ...question, id: "when" }])).toEqual({
      content: '{"answers":{"go":{"answers":["Yes"]},"when":{"answers":["Yes"]}}}',
      success: true,
    });
  });

  it("is refused where nobody can answer", async () => {
    expect(await ask(undefined)).toEqual({
      content: "request_user_input is unavailable: nobody can answer in this session",
      success: false,
    });
  });

  it("says when the user would not answer", async () => {
    const { content } = await ask({ ask: () => Promise.resolve(null) });
    expect(content).toBe("request_user_input was cancelled before receiving a response");
  });

  it.each([[[]], [undefined]])("is refused with the options %j", async (none) => {
    const { content } = await ask({ ask: () => Promise.resolve({}) }, [{ ...question, options: none }]);
    expect(content).toBe("request_user_input requires non-empty options for every question");
  });
});
