import { describe, expect, it } from "vitest";
import type { ResponseItem } from "../../../../../src/agent/model/items.js";
import type { ModelEvent } from "../../../../../src/agent/model/model-client.js";
import { parseScript } from "../../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../../src/agent/model/script/scripted-client.js";

async function play(yaml: string, answer: (call: { name: string; arguments: string }) => string) {
  const client = createScriptedClient(parseScript(yaml, "play.yaml"));
  const input: ResponseItem[] = [];
  const events: ModelEvent[] = [];
  for (;;) {
    const items: ResponseItem[] = [];
    const request = { instructions: "", input, tools: [] };
    for await (const event of client.stream(request, new AbortController().signal)) {
      events.push(event);
      if (event.kind === "item") items.push(event.item);
    }
    input.push(...items);
    const calls = items.filter((item) => item.type === "function_call");
    for (const call of calls)
      input.push({ type: "function_call_output", call_id: call.call_id, output: answer(call) });
    if (calls.length === 0) return { events, input };
  }
}

const check = (expectation: string) => `steps:
  - calls:
      - shell: { command: [ls] }
  - expect: ${expectation}
    text: Done.
`;

describe("the scripted model", () => {
  it("plays one step for each request", async () => {
    const { input } = await play(
      `steps:
  - text: I look.
    calls:
      - shell: { command: [ls] }
      - exec_command: { cmd: pwd }
  - text: Done.
`,
      () => "output",
    );
    expect(input).toMatchObject([
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look." }] },
      { type: "function_call", call_id: "call_1_1", name: "shell", arguments: '{"command":["ls"]}' },
      { type: "function_call", call_id: "call_1_2", name: "exec_command", arguments: '{"cmd":"pwd"}' },
      { type: "function_call_output", call_id: "call_1_1" },
      { type: "function_call_output", call_id: "call_1_2" },
      { type: "message", content: [{ text: "Done." }] },
    ]);
  });

  it.each([
    ["{ contains: [one, two] }", "one two"],
    ["{ notContains: three }", "one two"],
    ['{ matches: "^two$" }', "one\ntwo"],
    ["{ exitCode: 3 }", "Exit code: 3\nWall time: 0 seconds\nOutput:\nx"],
    [
      "{ exitCode: 0 }",
      "Chunk ID: abcdef\nWall time: 0.1000 seconds\nProcess exited with code 0\nOutput:\nx",
    ],
    ["{ exitCode: 1 }", '{"output":"x","metadata":{"exit_code":1,"duration_seconds":0.0}}'],
  ])("goes on when %s is met", async (expectation, output) => {
    await expect(play(check(expectation), () => output)).resolves.toBeDefined();
  });

  it.each([
    ["{ contains: [one, three] }", "one two", 'does not contain "three"'],
    ["{ notContains: two }", "one two", 'contains "two"'],
    ['{ matches: "^tw$" }', "two", "does not match /^tw$/mu"],
    ["{ exitCode: 0 }", "Exit code: 3\nOutput:\nx", "reports exit code 3, and 0 was expected"],
    ["{ exitCode: 0 }", "no code", "reports no exit code, and 0 was expected"],
    [
      "{ exitCode: 0 }",
      "Exit code: 1\nWall time: 0 seconds\nOutput:\nExit code: 0\nProcess exited with code 0",
      "reports exit code 1, and 0 was expected",
    ],
  ])("fails the run when %s is not met by %j", async (expectation, output, reason) => {
    await expect(play(check(expectation), () => output)).rejects.toMatchObject({
      code: "model.script",
      message: `play.yaml:4: the output of the previous call ${reason}\n--- output ---\n${output}\n--- end of output ---`,
    });
  });

  it("shows head and tail of a long output", async () => {
    const output = `${"a".repeat(5000)}${"b".repeat(5000)}`;
    await expect(play(check("{ contains: c }"), () => output)).rejects.toThrow(
      /a\n… 6000 characters not shown …\nb/,
    );
  });

  it("checks each output of a step with several calls", async () => {
    const script = `steps:
  - calls:
      - a: {}
      - b: {}
  - expect:
      - contains: a
      - contains: a
    text: Done.
`;
    await expect(play(script, ({ name }) => name)).rejects.toThrow(/^play\.yaml:7: .* does not contain "a"/);
  });

  it("puts what a named group matched into later calls, as a number where it is one", async () => {
    const { input } = await play(
      `steps:
  - calls:
      - exec_command: { cmd: cat, tty: true }
  - expect: { matches: 'session ID (?<id>\\d+)' }
    calls:
      - write_stdin: { session_id: "\${id}", chars: "\${id} of \${HOME}" }
  - text: Done.
`,
      () => "Process running with session ID 4711",
    );
    const call = input.findLast((item) => item.type === "function_call");
    expect(call?.arguments).toBe(`{"session_id":4711,"chars":"4711 of \${HOME}"}`);
  });
});
