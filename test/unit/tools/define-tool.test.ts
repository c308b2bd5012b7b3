import { expect, it } from "vitest";
import { CallScheduler } from "../../../src/tools/call-scheduler.js";
import { createToolRegistry } from "../../../src/tools/registry.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const tools = createToolRegistry(new MemorySandbox(), { cwd: "/tmp" });

it.each([
  ["exec_command", "{}", "missing field `cmd`"],
  ["exec_command", '{"cmd":null}', "missing field `cmd`"],
  ["update_plan", '{"plan":[{"status":"pending"}]}', "missing field `step`"],
  ["exec_command", '{"cmd":5}', "`cmd`: Invalid input: expected string, received number"],
  [
    "exec_command",
    '{"cmd":"x","prefix_rule":[1]}',
    "`prefix_rule.0`: Invalid input: expected string, received number",
  ],
  [
    "exec_command",
    '{"cmd":"x","sandbox_permissions":"bad"}',
    '`sandbox_permissions`: Invalid option: expected one of "use_default"|"require_escalated"',
  ],
  ["exec_command", '"x"', "Invalid input: expected object, received string"],
  [
    "exec_command",
    '{"tty":1}',
    "missing field `cmd`; `tty`: Invalid input: expected boolean, received number",
  ],
  ["exec_command", "", "SyntaxError: Unexpected end of JSON input"],
  ["exec_command", '{"cmd":"x",}', expect.stringMatching(/^SyntaxError: .*JSON/)],
])("%s refuses the arguments %j", async (name, input, reason) => {
  const scheduler = new CallScheduler(tools, { signal: new AbortController().signal });
  const { content, success } = await scheduler.run({ callId: "c", name, kind: "function", input });
  expect(content.replace(/^failed to parse function arguments: /, "")).toEqual(reason);
  expect(success).toBe(false);
});
