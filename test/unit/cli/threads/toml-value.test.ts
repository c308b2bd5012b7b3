import { expect, it } from "vitest";
import { parseOverride } from "../../../../src/agent/config/settings/load-config.js";
import { tomlValue } from "../../../../src/cli/threads/toml-value.js";

it.each([
  "text",
  'quotes "\\" and lines\r\n\t\u0000\u007f\u2028',
  "",
  true,
  0,
  -1.5,
  1e21,
  [],
  ["a", ["b"], { c: 1 }],
  {},
  { "a.b": { "": "x", 'quoted "key"': [1, 2] } },
])("%j is the same value in a configuration", (value) => {
  expect(parseOverride(`key=${tomlValue(value, "key")}`)).toEqual({ key: value });
});

it.each([null, undefined, [null], { a: null }])("%j is no value of a configuration", (value) => {
  expect(() => tomlValue(value, "key")).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});
