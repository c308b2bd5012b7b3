import { describe, expect, it } from "vitest";
import { allowingRules, describeRule } from "../../../../src/egress/requests/decide-request.js";
import { readRequest } from "../../../../src/egress/requests/read-request.js";

const host = "api.test";

function isAllowed(
  rule: Omit<Parameters<typeof describeRule>[0], "host">,
  target: string,
  method = "GET",
): boolean | string {
  const reading = readRequest(method, target, {});
  if (reading.kind === "ambiguous") return reading.what;
  return allowingRules([{ host, ...rule }], reading.request) !== null;
}

describe("rules of several sources", () => {
  const asked = (target: string) => {
    const reading = readRequest("GET", target, {});
    if (reading.kind === "ambiguous") throw new Error(reading.what);
    return reading.request;
  };
  const wide = { host, path: "/repos/**", source: 0 };
  const other = { host, path: "/search", source: 0 };
  const narrow = { host, path: "/repos/acme/*", source: 1 };

  it("allow a request only together", () => {
    const rules = [wide, other, narrow];
    expect(allowingRules(rules, asked("/repos/acme/one"))).toEqual([wide, narrow]);
    expect(allowingRules(rules, asked("/repos/else/one"))).toBeNull();
    expect(allowingRules(rules, asked("/search"))).toBeNull();
    expect(allowingRules([wide, other], asked("/search"))).toEqual([other]);
  });
});

describe("a rule for requests", () => {
  it.each([
    ["/repos/acme/*", "/repos/acme/one", true],
    ["/repos/acme/*", "/repos/acme/one/two", false],
    ["/repos/acme/*", "/repos/acme", false],
    ["/repos/acme/**", "/repos/acme/one/two", true],
    ["/repos/acme/**", "/repos/acme2/one", false],
    ["/repos/**/pulls", "/repos/a/b/pulls", true],
    ["/a+b(c)", "/a+b(c)", true],
    ["/a.c", "/abc", false],
    ["/Case", "/case", false],
    ["/*", "/%41%E2%82%AC", true],
    ["/A", "/%41", true],
  ])("with the path %s and a request for %s: %s", (path, target, expected) => {
    expect(isAllowed({ path }, target)).toBe(expected);
  });

  it.each([
    ["/a/../b", "its path has a part that is . or .."],
    ["/a/%2e%2E/b", "its path has a part that is . or .."],
    ["/a/..;x/b", "its path has a part that is . or .."],
    ["/a%2fb", "its path has an encoded slash or backslash"],
    ["/a%5Cb", "its path has an encoded slash or backslash"],
    ["/a\\b", "its path has a backslash or #"],
    ["/a%252e", "its path has an encoded %, so it may be encoded twice"],
    ["/a//b", "its path has two slashes in a row"],
    ["/a%00", "its path has an encoded control character"],
    ["/a%zz", "its path is not properly encoded"],
    ["/a%ff", "its path is not properly encoded"],
    ["*", "its path does not begin with /, or is not ASCII"],
    ["/a?b=%f", "a parameter of its URL is not properly encoded"],
  ])("never decides about %s, since %s", (target, what) => {
    expect(isAllowed({ path: "/**" }, target)).toBe(what);
  });

  it.each([
    ["/?state=open", true],
    ["/", true],
    ["/?state=closed", false],
    ["/?state=open&state=closed", false],
    ["/?state=open&other=1", false],
    ["/?st%61te=op%65n", true],
    ["/?name=a/b", true],
    ["/?__proto__=1", false],
  ])("with parameters and a request for %s: %s", (target, expected) => {
    expect(isAllowed({ query: { state: "open", name: "*" } }, target)).toBe(expected);
  });

  it("is for its methods, and headers that name another one make a request ambiguous", () => {
    expect(isAllowed({ methods: ["GET", "HEAD"] }, "/", "HEAD")).toBe(true);
    expect(isAllowed({ methods: ["GET", "HEAD"] }, "/", "POST")).toBe(false);
    expect(readRequest("POST", "/", { "x-http-method-override": "DELETE" })).toMatchObject({
      kind: "ambiguous",
    });
  });

  it("takes no longer than in proportion for a URL that is made to be slow", () => {
    const path = `/${"**a".repeat(30)}`;
    expect(isAllowed({ path }, `/${"a".repeat(20_000)}b`)).toBe(false);
  });

  it("is described as it is written", () => {
    expect(describeRule({ host, methods: ["GET"], path: "/a/*", query: { b: "c" } })).toBe(
      "GET api.test /a/*?b=c",
    );
    expect(describeRule({ host })).toBe("any method api.test any path");
  });
});
