import { describe, expect, it } from "vitest";
import { elicitFrom } from "../../../../src/agent/open/elicit-by-questions.js";
import { approvalQuestion } from "../../../../src/cli/questions/approval-question.js";
import type { ElicitField, ElicitQuestion } from "../../../../src/tools/mcp/mcp-servers.js";
import type { McpCallToReview } from "../../../../src/tools/review/action.js";
import type { UserQuestion } from "../../../../src/tools/session/request-user-input.js";

function asked(changes: Partial<McpCallToReview> = {}) {
  const action: McpCallToReview = {
    kind: "mcp-call",
    tool: "docs__wipe",
    server: "docs",
    name: "wipe",
    title: "Wipe it",
    arguments: { path: "/a" },
    annotations: { readOnly: false, destructive: true, idempotent: null, openWorld: null },
    approval: "auto",
    ...changes,
  };
  return approvalQuestion(
    { action, place: "sandbox", reason: null, denial: null, prefix: null, callId: "c" },
    { columns: 80 },
  );
}

describe("the question about a call of an MCP server's tool", () => {
  it("names the server and the tool, shows the arguments, and says what the server claims", () => {
    const { lines, choices } = asked();
    const text = lines.map((line) => line.text).join("\n");
    expect(text).toContain('the tool "wipe" of the MCP server "docs"');
    expect(text).toContain('"path": "/a"');
    expect(text).toContain("it changes something, it may destroy something");
    expect(choices.map(({ answer }) => answer)).toEqual(["approved", "approved_for_session", "denied"]);
  });

  it("hides nothing of hostile names and arguments, and keeps them short", () => {
    const evil = "\u001b[2Jx\u202ey\n  ╰ end\u0007";
    const { lines } = asked({
      server: evil,
      name: evil.repeat(100),
      title: evil.repeat(100),
      arguments: { [evil]: "z".repeat(1_000_000) },
    });
    const text = lines.map((line) => line.text).join("\n");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these must not reach a terminal
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/);
    expect(lines.length).toBeLessThan(100);
    expect(text).toContain("NOT SHOWN");
    expect(lines.filter(({ text: line }) => line === "  ╰ end")).toHaveLength(1);
  });
});

function user(...answers: (string | null)[]) {
  const questions: UserQuestion[] = [];
  const elicit = elicitFrom({
    ask([question]) {
      if (question === undefined) throw new Error("no question");
      questions.push(question);
      const answer = answers.shift() ?? null;
      return Promise.resolve(answer === null ? null : { [question.id]: [answer] });
    },
  });
  const { signal } = new AbortController();
  return { questions, ask: (question: ElicitQuestion) => elicit(question, { signal }) };
}

const field = (name: string, value: ElicitField["value"], required = true): ElicitField => ({
  name,
  title: null,
  description: null,
  required,
  value,
});
const anyText = { type: "string", minLength: null, maxLength: null, format: null, default: null } as const;
const port = { type: "integer", minimum: 1, maximum: 9, default: null } as const;
const form = (...fields: ElicitField[]): ElicitQuestion => ({
  kind: "form",
  server: "docs",
  message: "Please",
  fields,
});

describe("a question of an MCP server to the user", () => {
  it("is asked value by value, after the user agreed to answer", async () => {
    const { ask, questions } = user("yes", "blue", "7", "Yes", "-", "Leave it out");
    const answer = await ask(
      form(
        field("colour", anyText),
        field("port", port),
        field("sure", { type: "boolean", default: null }),
        field("more", anyText, false),
        field("really", { type: "boolean", default: null }, false),
      ),
    );
    expect(answer).toEqual({ action: "accept", content: { colour: "blue", port: 7, sure: true } });
    expect(new Set(questions.map(({ header }) => header))).toEqual(new Set(["MCP server docs"]));
  });

  it("is declined by a No, and cancelled by no answer", async () => {
    expect(await user("No").ask(form(field("a", anyText)))).toEqual({ action: "decline" });
    expect(await user(null).ask(form(field("a", anyText)))).toEqual({ action: "cancel" });
    expect(await user("Yes", null).ask(form(field("a", anyText)))).toEqual({ action: "cancel" });
  });

  it("is asked again for a value that does not fit, but not forever", async () => {
    const again = user("Yes", "many", "10", "3");
    expect(await again.ask(form(field("port", port)))).toEqual({ action: "accept", content: { port: 3 } });
    expect(await user("Yes", "x", "y", "z", "3").ask(form(field("port", port)))).toEqual({
      action: "cancel",
    });
  });

  it("offers no numbered choices where a number could be the value", async () => {
    const { ask, questions } = user("Yes", "1", "1");
    const answer = await ask(form(field("port", port, false), field("name", anyText, false)));
    expect(answer).toEqual({ action: "accept", content: { port: 1, name: "1" } });
    expect(questions.slice(1).map(({ options }) => options)).toEqual([[], []]);
    expect(questions[1]?.question).toContain("(optional: - leaves it out)");
  });

  it("about a page shows its address, and sends nothing back", async () => {
    const { ask, questions } = user("Yes");
    const url = "https://example.org/login";
    expect(await ask({ kind: "url", server: "docs", message: "Log in", url })).toEqual({
      action: "accept",
      content: {},
    });
    expect(questions[0]?.question).toContain(url);
  });

  it("with too many fields is declined without asking", async () => {
    const { ask, questions } = user("Yes");
    const fields = Array.from({ length: 21 }, (_, at) => field(`f${at}`, anyText));
    expect(await ask(form(...fields))).toEqual({ action: "decline" });
    expect(questions).toEqual([]);
  });
});
