import { expect, it } from "vitest";
import { fileUri, toFileUri } from "../../../../../src/services/exec-server/wire/file-uri.js";

it.each([
  ["file:///a/b", "/a/b"],
  ["file:///a/b/", "/a/b"],
  ["file:///", "/"],
  ["file:///a//b/../c", "/a/c"],
  ["file:///../../etc", "/etc"],
  ["file:///a%20b/%C3%A9%23", "/a b/é#"],
])("%s is %s", (uri, path) => {
  expect(fileUri.parse(uri)).toBe(path);
});

it.each([
  "/a/b",
  "a",
  "",
  "http://host/a",
  "file://host/a",
  "file:a",
  "file:///a%2Fb",
  "file:///a%00b",
  "file:///%zz",
])("%s is refused", (uri) => {
  expect(fileUri.safeParse(uri).success).toBe(false);
});

it("any path comes back", () => {
  for (const path of ["/a b/#?%", "/é/\u{1f600}", "/"]) expect(fileUri.parse(toFileUri(path))).toBe(path);
});
