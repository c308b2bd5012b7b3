import { describe, expect, it } from "vitest";
import {
  parseCodexCall,
  parseReplyCall,
} from "../../../../../src/services/mcp-server/codex/tool-arguments.js";

const id = "01a20476-0000-7000-8000-000000000000";

describe("the arguments of codex", () => {
  it("are a prompt and settings", () => {
    expect(
      parseCodexCall({ prompt: "go", cwd: "sub", "approval-policy": "untrusted", config: { a: 1 } }),
    ).toEqual({
      kind: "codex",
      prompt: "go",
      settings: { cwd: "sub", "approval-policy": "untrusted", config: { a: 1 } },
    });
  });

  it("may be written as older versions had them", () => {
    expect(
      parseCodexCall({ prompt: "go", include_plan_tool: true, base_instructions: "be brief" }),
    ).toMatchObject({
      settings: { "include-plan-tool": true, "base-instructions": "be brief" },
    });
  });

  it.each([
    [undefined, "Missing arguments for codex tool-call; the `prompt` field is required."],
    [{}, "missing field `prompt`"],
    [{ prompt: 1 }, "`prompt`: Invalid input: expected string, received number"],
    [[], "Invalid input: expected object, received array"],
    [null, "Invalid input: expected object, received null"],
    [{ prompt: "x", foo: 1 }, 'Unrecognized key: "foo"'],
    [{ prompt: "x", sandbox: "none" }, '`sandbox`: Invalid option: expected one of "read-only"|'],
    [{ prompt: "x", "approval-policy": "always" }, 'expected one of "untrusted"|"on-failure"'],
    [{ prompt: "x", cwd: "a\0b" }, "`cwd`: no path contains a zero character"],
    [{ prompt: "x", config: [] }, "`config`: Invalid input: expected record, received array"],
    [{ prompt: "x", base_instructions: "a", "base-instructions": "b" }, "`base-instructions` is given twice"],
    [{ foo: 1 }, 'missing field `prompt`; Unrecognized key: "foo"'],
  ])("%j is refused", (given, words) => {
    expect(parseCodexCall(given)).toEqual({ kind: "invalid", reason: expect.stringContaining(words) });
  });

  it("are refused with a name that every object has", () => {
    expect(parseCodexCall(JSON.parse('{"prompt":"x","__proto__":{}}'))).toMatchObject({ kind: "invalid" });
    expect(parseCodexCall({ prompt: "x", constructor: 1 })).toMatchObject({ kind: "invalid" });
  });
});

describe("the arguments of codex-reply", () => {
  it.each(["threadId", "conversationId", "sessionId"])("name the session as %s", (name) => {
    for (const written of [id, id.toUpperCase(), `urn:uuid:${id}`])
      expect(parseReplyCall({ prompt: "on", [name]: written, other: 1 })).toEqual({
        kind: "codex-reply",
        prompt: "on",
        threadId: id,
      });
  });

  it.each([
    [undefined, "Missing arguments for codex-reply tool-call"],
    [{ threadId: id }, "missing field `prompt`"],
    [{ prompt: "x" }, "either threadId or conversationId must be provided"],
    [{ prompt: "x", threadId: null }, "either threadId or conversationId must be provided"],
    [{ prompt: "x", threadId: "../../etc/passwd" }, "is not the threadId of a result of codex"],
    [{ prompt: "x", threadId: "01a2" }, "is not the threadId of a result of codex"],
  ])("%j is refused", (given, words) => {
    expect(parseReplyCall(given)).toEqual({ kind: "invalid", reason: expect.stringContaining(words) });
  });
});
