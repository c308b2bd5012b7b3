import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { modelSchema } from "../../../../../../src/agent/mcp/client/tool-list/tool-schema.js";
import type { JsonSchema } from "../../../../../../src/tools/json-schema.js";
import { strictSchema } from "../../../../../../src/tools/json-schema.js";
import { runs } from "../../../../../support/fuzz.js";

/** The schema of the only argument, `x`. */
function argument(schema: unknown, defs: Record<string, unknown> = {}): JsonSchema | undefined {
  return modelSchema({ type: "object", properties: { x: schema }, $defs: defs }).properties?.x;
}

const text = { type: "string" };

describe("the schema of an MCP tool, for a model,", () => {
  it("keeps types, descriptions, choices, alternatives, properties and items", () => {
    const schema = {
      type: "object",
      description: "arguments",
      properties: {
        count: { type: "integer", description: "how many", minimum: 1 },
        unit: { type: ["string", "null"], enum: ["a", "b", null] },
        list: { type: "array", items: { anyOf: [{ type: "string" }, { type: "number" }] } },
        map: { type: "object", properties: {}, additionalProperties: { type: "boolean" } },
      },
      required: ["count"],
      additionalProperties: false,
    };
    const { minimum: _, ...count } = schema.properties.count;
    expect(modelSchema(schema)).toEqual({ ...schema, properties: { ...schema.properties, count } });
  });

  it.each([
    [{ const: "a" }, { type: "string", enum: ["a"] }],
    [{ const: 1 }, { type: "number", enum: [1] }],
    [{ enum: [true, false] }, { type: "boolean", enum: [true, false] }],
    [{ required: ["a"] }, { type: "object", properties: {} }],
    [{ properties: { a: {} } }, { type: "object", properties: { a: text } }],
    [{ items: {} }, { type: "array", items: text }],
    [{ type: "array" }, { type: "array", items: text }],
    [{ prefixItems: [{ type: "number" }] }, { type: "array", items: { type: "number" } }],
    [{ items: [{ type: "number" }, {}] }, { type: "array", items: { anyOf: [{ type: "number" }, text] } }],
    [{ multipleOf: 2 }, { type: "number" }],
    [{ format: "date" }, text],
    [{}, text],
    [true, text],
    [false, text],
    [{ type: "nonsense" }, text],
    [{ type: ["string", "nonsense"] }, text],
    [
      { oneOf: [text, { type: "null" }], description: "d" },
      { description: "d", anyOf: [text, { type: "null" }] },
    ],
    ["not a schema", {}],
    [null, {}],
  ])("makes of %j: %j", (schema, expected) => {
    expect(argument(schema)).toEqual(expected);
  });

  it("has the parts of an allOf in one", () => {
    const parts = [
      { type: "object", properties: { a: text }, required: ["a"] },
      { $ref: "#/$defs/b", description: "beside" },
    ];
    const b = { properties: { b: { type: "number" } }, required: ["b"] };
    expect(argument({ allOf: parts }, { b })).toEqual({
      type: "object",
      properties: { a: text, b: { type: "number" } },
      required: ["a", "b"],
    });
  });

  it("has references replaced by what they mean, with the description of the place", () => {
    const address = {
      type: "object",
      description: "an address",
      properties: { street: { $ref: "#/$defs/name" } },
    };
    const name = { type: "string", description: "a name" };
    expect(argument({ $ref: "#/$defs/address", description: "where to" }, { address, name })).toEqual({
      type: "object",
      description: "where to",
      properties: { street: name },
    });
    expect(argument({ $ref: "#/$defs/a~1b%20c~0" }, { "a/b c~": { type: "integer" } })).toEqual({
      type: "integer",
    });
  });

  it.each(["https://example.com/schema", "#/$defs/missing", "#anchor", "#/%E0%A4%A", "#/__proto__/toString"])(
    "takes anything where a reference cannot be followed: %s",
    ($ref) => {
      expect(argument({ $ref, description: "d" })).toEqual({ description: "d" });
    },
  );

  it("takes anything where a schema contains itself", () => {
    const tree = {
      type: "object",
      properties: { value: text, children: { type: "array", items: { $ref: "#/$defs/tree" } } },
    };
    expect(argument({ $ref: "#/$defs/tree" }, { tree })).toEqual({
      type: "object",
      properties: { value: text, children: { type: "array", items: {} } },
    });
    expect(argument({ $ref: "#/$defs/a" }, { a: { $ref: "#/$defs/a" } })).toEqual({});
    expect(modelSchema({ allOf: [{ $ref: "#" }] })).toEqual({ type: "object", properties: {} });
  });

  it("is an object at the top, whatever the server says", () => {
    expect(modelSchema(undefined)).toEqual({ type: "object", properties: {} });
    expect(modelSchema({ type: "string", enum: ["a"] })).toEqual({ type: "object", properties: {} });
    const alternatives = {
      type: "object",
      anyOf: [{ properties: { a: text }, required: ["a"] }, { properties: { b: text } }],
    };
    expect(modelSchema(alternatives)).toEqual({ type: "object", properties: { a: text, b: text } });
  });

  it("requires only properties that there are, and has none that changes objects", () => {
    const schema = JSON.parse(
      '{"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "number"}}, "required": ["__proto__", "constructor", "z", 1]}',
    );
    const { properties, required } = modelSchema(schema);
    expect(Object.keys(properties ?? {})).toEqual(["constructor"]);
    expect(required).toEqual(["constructor"]);
  });
});

describe("a hostile schema of an MCP tool stays small:", () => {
  const size = (schema: unknown) => JSON.stringify(strictSchema(modelSchema(schema))).length;

  it("one that is nested a hundred thousand times", () => {
    let nested: unknown = text;
    for (let level = 0; level < 100_000; level++) nested = { properties: { a: nested } };
    expect(size(nested)).toBeLessThan(10_000);
    let listed: unknown = text;
    for (let level = 0; level < 100_000; level++) listed = { anyOf: [listed] };
    expect(size({ properties: { a: listed } })).toBeLessThan(10_000);
    let all: unknown = text;
    for (let level = 0; level < 100_000; level++) all = { allOf: [all] };
    expect(size(all)).toBeLessThan(10_000);
  });

  it("one that means a billion properties", () => {
    const two = (name: string) => ({
      properties: { a: { $ref: `#/$defs/${name}` }, b: { $ref: `#/$defs/${name}` } },
    });
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, level) => [`d${level}`, level === 29 ? text : two(`d${level + 1}`)]),
    );
    expect(size({ ...two("d0"), $defs })).toBeLessThan(400_000);
  });

  it("one with ten million characters", () => {
    const long = "x".repeat(100_000);
    const many = Array.from({ length: 100 }, (_, index) => `${long}${index}`);
    expect(size({ properties: Object.fromEntries(many.map((name) => [name, {}])) })).toBeLessThan(400_000);
    expect(size({ properties: { a: { enum: many } } })).toBeLessThan(400_000);
    expect(
      size({ properties: Object.fromEntries(many.map((description, n) => [`p${n}`, { description }])) }),
    ).toBeLessThan(900_000);
  });

  it("one in which everything leads to everything", () => {
    const references = (name: string) => Array.from({ length: 400 }, () => ({ $ref: `#/$defs/${name}` }));
    const properties = Object.fromEntries(
      references("b").map((reference, index) => [`p${index}`, reference]),
    );
    const $defs = { a: { properties }, b: { allOf: references("a") } };
    expect(size({ properties, allOf: references("a"), $defs })).toBeLessThan(400_000);
  });

  it("any other", () => {
    const schema = fc.letrec((tie) => ({
      schema: fc.oneof(
        { maxDepth: 4 },
        fc.jsonValue(),
        fc.dictionary(
          fc.constantFrom(
            "type",
            "$ref",
            "anyOf",
            "allOf",
            "oneOf",
            "items",
            "properties",
            "required",
            "enum",
          ),
          fc.oneof(tie("schema"), fc.array(tie("schema")), fc.constantFrom("#", "#/properties/a", "object")),
        ),
        fc.record({ properties: fc.dictionary(fc.string(), tie("schema")) }),
      ),
    })).schema;
    fc.assert(
      fc.property(schema, (value) => {
        const strict = strictSchema(modelSchema(value));
        expect(strict.type).toBe("object");
        expect(JSON.stringify(strict).length).toBeLessThan(1_000_000);
      }),
      { numRuns: runs({ short: 25, deep: 500 }) },
    );
  });
});
