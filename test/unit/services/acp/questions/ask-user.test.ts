import { describe, expect, it } from "vitest";
import { answersIn, formOf } from "../../../../../src/services/acp/questions/ask-user.js";
import { schema } from "../../../../support/acp-schema.js";

const colour = {
  id: "colour",
  header: "Colour",
  question: "Which?",
  options: [
    { label: "red", description: "warm\x1b[2J" },
    { label: "blue", description: "cold" },
  ],
};
const name = { id: "constructor", header: "Name", question: "Who?" };

describe("questions as a form", () => {
  it("are what the protocol allows, with a list and a field for each", () => {
    const form = formOf([colour, name]);
    expect(schema.zCreateElicitationRequest.parse({ sessionId: "s", ...form })).toMatchObject({
      message: "The agent has questions.",
      requestedSchema: {
        properties: { choice0: { oneOf: [{ const: "0" }, { const: "1" }] }, text0: {}, text1: {} },
      },
    });
    expect(JSON.stringify(form)).not.toContain("\\u001b");
  });
});

describe("answers", () => {
  it.each([
    [{ choice0: "1" }, { colour: ["blue"] }],
    [{ choice0: "1", text0: "green" }, { colour: ["green"] }],
    [{ text0: "  ", text1: "me" }, { constructor: ["me"] }],
    [{}, null],
    [{ choice0: "7" }, null],
    [{ choice0: "__proto__" }, null],
    [{ choice0: ["1"], text1: 5 }, { colour: ["blue"] }],
  ])("%j are %j", (content, answers) => {
    const got = answersIn([colour, name], content);
    expect(got === null ? null : Object.entries(got)).toEqual(
      answers === null ? null : Object.entries(answers),
    );
  });
});
