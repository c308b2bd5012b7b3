import { expect, it } from "vitest";
import { innerPath } from "../../../../../src/services/serve/files/sandbox-archive.js";

it.each([
  ["top", ""],
  ["top/", ""],
  ["./top/a/b", "a/b"],
  ["top//a/./b/", "a/b"],
])("%j is below the top of an archive", (path, inside) => {
  expect(innerPath(path, true)).toBe(inside);
});

it.each(["/top/a", "top/../a", "..", "../top", "other/a", "a", "", "top/a\0b"])(
  "%j leads out of an archive, and is refused",
  (path) => {
    expect(() => innerPath(path, true)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
  },
);

it("an archive that somebody gives has any names, but none that leads out of it", () => {
  expect(innerPath("./a/b", false)).toBe("a/b");
  expect(() => innerPath("a/../../b", false)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
});
