import { expect, it } from "vitest";
import { refuseOptionsOfNode } from "../../../src/cli/node-options.js";

const words = [
  "--experimental-config-file=settings.json",
  "--experimental-config-file",
  "--experimental-default-config-file",
];

it.each(words)("a Node that obeys %s itself makes brig refuse it, wherever it is", (word) => {
  const refused = expect.objectContaining({ code: "usage.invalid", hint: expect.stringContaining("sh -c") });
  for (const node of ["22.10.0", "26.10.0"])
    expect(() => refuseOptionsOfNode(["exec", "--", "node", word, "app.js"], { node })).toThrow(refused);
});

it("what Node does not obey is brig's, or the command's", () => {
  const others = [
    "--experimental-config-files",
    "--env-file=.env",
    "--inspect",
    "node --experimental-config-file=x",
  ];
  expect(() => refuseOptionsOfNode(["exec", ...others], { node: "26.10.0" })).not.toThrow();
  expect(() => refuseOptionsOfNode(["exec", ...words], { node: "20.19.0" })).not.toThrow();
});
