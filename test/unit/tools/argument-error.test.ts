import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { CallScheduler } from "../../../src/tools/call-scheduler.js";
import { readJson } from "../../../src/tools/json-reader.js";
import { createToolRegistry } from "../../../src/tools/registry.js";
import { runs } from "../../support/fuzz.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const tools = createToolRegistry(new MemorySandbox(), { cwd: "/tmp" });

async function told(name: string, input: string): Promise<string> {
  const scheduler = new CallScheduler(tools, { signal: new AbortController().signal });
  const { content } = await scheduler.run({ callId: "c", name, kind: "function", input });
  return content.replace("failed to parse function arguments: ", "");
}

describe("arguments that do not fit are refused in serde's words", () => {
  // What Codex's own program answers to the same texts.
  it.each([
    ["exec_command", '{"cmd":5}', "invalid type: integer `5`, expected a string at line 1 column 8"],
    ["exec_command", "{}", "missing field `cmd` at line 1 column 2"],
    ["exec_command", "{oops", "key must be a string at line 1 column 2"],
    ["exec_command", "", "EOF while parsing a value at line 1 column 0"],
    [
      "exec_command",
      '{"cmd":"x","yield_time_ms":-1}',
      "invalid value: integer `-1`, expected u64 at line 1 column 29",
    ],
    [
      "exec_command",
      '{"cmd":"x","yield_time_ms":1.5}',
      "invalid type: floating point `1.5`, expected u64 at line 1 column 30",
    ],
    [
      "exec_command",
      '{"cmd":"x","yield_time_ms":"a"}',
      'invalid type: string "a", expected u64 at line 1 column 30',
    ],
    [
      "exec_command",
      '{"cmd":"x","tty":"yes"}',
      'invalid type: string "yes", expected a boolean at line 1 column 22',
    ],
    ["exec_command", '{"cmd":["x"]}', "invalid type: sequence, expected a string at line 1 column 7"],
    ["exec_command", '{"cmd":null}', "invalid type: null, expected a string at line 1 column 11"],
    [
      "exec_command",
      '{"cmd":"x","sandbox_permissions":"bad"}',
      "unknown variant `bad`, expected `use_default` or `require_escalated` at line 1 column 38",
    ],
    ["exec_command", '{"cmd":"x"} extra', "trailing characters at line 1 column 13"],
    ["exec_command", '{"cmd":"x",}', "trailing comma at line 1 column 12"],
    ["exec_command", '{\n "cmd": 5\n}', "invalid type: integer `5`, expected a string at line 2 column 9"],
    ["exec_command", '{"cmd":"x"', "EOF while parsing an object at line 1 column 10"],
    [
      "exec_command",
      '{"cmd":"x\ny"}',
      "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 9",
    ],
    ["exec_command", '{"cmd":"\\x"}', "invalid escape at line 1 column 10"],
    ["exec_command", '{"cmd":{"a":1}}', "invalid type: map, expected a string at line 1 column 7"],
    ["exec_command", '{"cmd":true}', "invalid type: boolean `true`, expected a string at line 1 column 11"],
    ["exec_command", '{"cmd":1.5}', "invalid type: number, expected a string at line 1 column 10"],
    [
      "exec_command",
      '{"cmd":"x","prefix_rule":"npm"}',
      'invalid type: string "npm", expected a sequence at line 1 column 30',
    ],
    [
      "exec_command",
      '{"cmd":"x","prefix_rule":[1]}',
      "invalid type: integer `1`, expected a string at line 1 column 27",
    ],
    [
      "exec_command",
      '{"cmd":"x","max_output_tokens":99999999999999999999999}',
      "invalid type: floating point `1e+23`, expected usize at line 1 column 54",
    ],
    ["write_stdin", '{"session_id":"a"}', 'invalid type: string "a", expected i32 at line 1 column 17'],
    [
      "write_stdin",
      '{"session_id":1.5}',
      "invalid type: floating point `1.5`, expected i32 at line 1 column 17",
    ],
    ["write_stdin", "{}", "missing field `session_id` at line 1 column 2"],
    ["view_image", '{"path":1}', "invalid type: integer `1`, expected a string at line 1 column 9"],
    ["exec_command", '{cmd:"x"}', "key must be a string at line 1 column 2"],
    ["exec_command", '{"cmd" "x"}', "expected `:` at line 1 column 8"],
    ["exec_command", '{"cmd":nul}', "expected ident at line 1 column 11"],
    ["exec_command", '{"cmd":01}', "invalid number at line 1 column 9"],
    ["exec_command", '"x"', 'invalid type: string "x", expected struct ExecCommandArgs at line 1 column 3'],
  ])("%s %j: %s", async (name, input, reason) => {
    expect(await told(name, input)).toBe(reason);
  });

  it("of two faults the first in the text is told, and what is missing last", async () => {
    expect(await told("exec_command", '{"tty":1,"yield_time_ms":"x"}')).toMatch(/^invalid type: integer `1`/);
    expect(await told("update_plan", '{"plan":[],"x":1}')).toMatch(
      /^unknown field `x`.* at line 1 column 14$/,
    );
  });

  it("bytes are counted, not characters", async () => {
    expect(await told("exec_command", '{"ü":1,"cmd":5}')).toMatch(/ at line 1 column 15$/);
  });
});

describe("the reader that finds the places", () => {
  it("takes what JSON.parse takes, but for a key that comes twice, and refuses the rest", () => {
    const soup = fc
      .array(fc.constantFrom(...'{}[],:"a\\ \n0-1.5e+tfn', "true", "null", '"k":', '"s"', "\\u00e9", "1e5"), {
        maxLength: 12,
      })
      .map((parts) => parts.join(""));
    const takes = (read: () => unknown) => {
      try {
        read();
        return true;
      } catch {
        return false;
      }
    };
    const hasTwice = (text: string) => takes(() => readJson(text)) || !/duplicate/.test(faultIn(text));
    fc.assert(
      fc.property(fc.oneof(soup, fc.json()), (text) => {
        fc.pre(hasTwice(text));
        expect(takes(() => readJson(text))).toBe(takes(() => JSON.parse(text)));
      }),
      { numRuns: runs({ short: 1500, deep: 50_000 }) },
    );
  });

  it("takes linear time, and no more depth than serde", () => {
    expect(faultIn("[".repeat(100_000))).toBe("recursion limit exceeded");
    readJson(JSON.stringify(Array.from({ length: 100_000 }, (_, at) => ({ at: `x${at}` }))));
  });
});

function faultIn(text: string): string {
  try {
    readJson(text);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
