import fc from "fast-check";
import { stringify } from "smol-toml";
import { describe, expect, it } from "vitest";
import { keyLines, parseToml } from "../../../../../src/agent/config/toml-document.js";

function lines(toml: string) {
  return Object.fromEntries(keyLines(toml));
}

describe("keyLines", () => {
  it("finds keys, dotted keys, tables and keys of inline tables", () => {
    const toml = [
      "\uFEFF# first",
      'model = "a" # = not = a = key',
      "a.b . c = 1",
      "",
      "[tools] # header",
      "  shell = 'x'",
      '[ model_providers . "my own" ]',
      'http_headers = { X-A = "1", "b.c" = [1, { d = 2 }], "quoted \\"}\\"" = true }',
      "[[hooks]]",
      "name = 1",
      "[[hooks]]",
      "name = 2",
    ].join("\r\n");
    expect(lines(toml)).toEqual({
      model: 2,
      a: 3,
      "a.b": 3,
      "a.b.c": 3,
      tools: 5,
      "tools.shell": 6,
      model_providers: 7,
      'model_providers."my own"': 7,
      'model_providers."my own".http_headers': 8,
      'model_providers."my own".http_headers.X-A': 8,
      'model_providers."my own".http_headers."b.c"': 8,
      'model_providers."my own".http_headers."b.c".d': 8,
      'model_providers."my own".http_headers."quoted \\"}\\""': 8,
      hooks: 9,
      "hooks.name": 10,
    });
  });

  it("is not led astray by texts over many lines, lists, dates and numbers", () => {
    const toml = [
      'a = """',
      "x = 1",
      '[no] \\""" "" ',
      '"""""',
      "b = '''",
      "y = 2'''''",
      "c = [ # ]",
      "  \"]\", '#', [ 1, 2 ],",
      "]",
      "d = 1979-05-27 07:32:00Z # z = 1",
      "e = +1_000.5e-3",
      "f = 0xff",
      "last = 1",
    ].join("\n");
    expect(lines(toml)).toEqual({ a: 1, b: 5, c: 7, d: 10, e: 11, f: 12, last: 13 });
  });

  it("finds every key of any document, on the line it stands on", () => {
    const key = fc.oneof(fc.stringMatching(/^[a-z_-]{1,6}$/), fc.string({ minLength: 1, maxLength: 6 }));
    const leaf = fc.oneof(
      fc.string(),
      fc.integer(),
      fc.boolean(),
      fc.date({ noInvalidDate: true, min: new Date(0), max: new Date(4e12) }),
      fc.array(fc.string(), { maxLength: 3 }),
    );
    const { table } = fc.letrec<{ table: Record<string, unknown> }>((tie) => ({
      table: fc.dictionary(key, fc.oneof({ depthSize: "small" }, leaf, tie("table")), { maxKeys: 4 }),
    }));
    fc.assert(
      fc.property(table, (value) => {
        const toml = stringify(value);
        const { table: parsed } = parseToml(toml, "f");
        const found = keyLines(toml);
        const rows = toml.split("\n");
        for (const [path, name] of keysOf(parsed, "")) {
          const line = found.get(path);
          expect(line, `${path} in\n${toml}`).toBeDefined();
          expect(rows[(line ?? 0) - 1]).toContain(name);
        }
      }),
      { numRuns: 120 },
    );
  });

  it("is asked only of what the parser takes, and then does not fail", () => {
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[ab[\]{}"'=.,#\n\\ -]{0,40}$/),
      fc.stringMatching(/^([ab."' ]{1,4}=["' a[\]{},=\n\\]{1,12}\n)*$/),
    );
    fc.assert(
      fc.property(text, (toml) => {
        try {
          const { table, lineOf } = parseToml(toml, "f");
          for (const key of Object.keys(table)) expect(lineOf([key])).toBeGreaterThan(0);
        } catch (error) {
          expect(error).toMatchObject({ code: "config.invalid" });
        }
      }),
      { numRuns: 3000 },
    );
  });
});

/** Paths as the outline names them, with the last part as it stands in the file. */
function* keysOf(table: object, above: string): Iterable<[string, string]> {
  for (const [key, value] of Object.entries(table)) {
    const name = /^[A-Za-z0-9_-]+$/.test(key) ? key : JSON.stringify(key);
    const path = above === "" ? name : `${above}.${name}`;
    yield [path, name];
    const isTable = typeof value === "object" && !Array.isArray(value) && !(value instanceof Date);
    if (isTable) yield* keysOf(value, path);
  }
}
