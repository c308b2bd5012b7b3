import fc from "fast-check";
import { expect, it } from "vitest";
import { withoutComments } from "../../../../src/lib/json/without-comments.js";

it("removes comments and trailing commas, and nothing from strings", () => {
  const text = String.raw`{
  // an "address", with a comma,
  "url": "https://example.com/*not*/,]", /* and
  * more **/ "quoted": "a \" // b",
  "list": [1, 2, /* last */ ],
}`;
  expect(JSON.parse(withoutComments(text))).toEqual({
    ...{ url: "https://example.com/*not*/,]", quoted: 'a " // b', list: [1, 2] },
  });
});

it("leaves JSON as it means, and ends with any text", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const text = JSON.stringify(value, null, 2);
      expect(JSON.parse(withoutComments(text))).toEqual(JSON.parse(text));
    }),
  );
  const pieces = fc.constantFrom("/", "*", '"', "\\", ",", "]", "}", "\n", " ", "a");
  fc.assert(fc.property(fc.array(pieces), (text) => void withoutComments(text.join(""))));
  expect(withoutComments(`/*${"*".repeat(500_000)}`)).toHaveLength(500_002);
  expect(withoutComments(`,${" ".repeat(500_000)}`)).toHaveLength(500_001);
  expect(withoutComments(`"${"\\".repeat(500_000)}`)).toHaveLength(500_001);
});
