import { describe, expect, it } from "vitest";
import { allowingRules, describeRule } from "../../../../../src/sandbox/egress/inspection.js";
import { readRequest } from "../../../../../src/sandbox/egress/read-request.js";

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
    ["/*/open", "/a/secret;/open", false],
    ["/a/*.txt", "/a/secret;.txt", false],
    ["/a/*", "/a/b;c=d", true],
    ["/a/*", "/a/b%3Bc", true],
    ["/a;v=1/*", "/a;v=1/b", false],
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
    ["/a%3fb=c", "its path has an encoded ? or #"],
    ["/a?b=c#d", "its query has a #"],
    ["/a?_method=DELETE", "its parameter _method names another method"],
    ["/a?b=c;_method=x", "its parameter _method names another method"],
    ["/a?method=delete", "its parameter method names another method"],
    ["/a?X-HTTP-Method-Override=PUT", "its parameter X-HTTP-Method-Override names another method"],
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
    ["/?name=a;admin=1", false],
    ["/?name=a;state=open", true],
    ["/?name=a%3Bb", true],
    ["/?state=open;state=open", false],
    ["/?name=;", true],
  ])("with parameters and a request for %s: %s", (target, expected) => {
    expect(isAllowed({ query: { state: "open", name: "*" } }, target)).toBe(expected);
  });

  it("is for its methods", () => {
    expect(isAllowed({ methods: ["GET", "HEAD"] }, "/", "HEAD")).toBe(true);
    expect(isAllowed({ methods: ["GET", "HEAD"] }, "/", "POST")).toBe(false);
  });

  it("does not hinder a parameter that is named method, and no method of HTTP or the request's own", () => {
    expect(isAllowed({}, "/?method=flickr.photos.search")).toBe(true);
    expect(isAllowed({}, "/?method=get")).toBe(true);
  });

  it.each([
    ["x-http-method-override", "method"],
    ["x_http_method_override", "method"],
    ["x-original-method", "method"],
    ["x-original-url", "path"],
    ["x_original.url", "path"],
    ["x-rewrite-url", "path"],
    ["x-forwarded-uri", "path"],
    ["destination", "path"],
    ["x-amz-copy-source", "path"],
    ["x-forwarded-host", "host"],
  ])("never decides about a request whose header %s names another %s", (name, what) => {
    expect(readRequest("GET", "/", { [name]: "/other" })).toEqual({
      kind: "ambiguous",
      what: `its header ${name} names another ${what}`,
    });
  });

  it("lets headers pass that only tell where a request comes from", () => {
    expect(readRequest("GET", "/", { forwarded: "for=192.0.2.1; host=other.test" }).kind).toBe("ambiguous");
    expect(readRequest("GET", "/", { forwarded: "for=192.0.2.1", "x-forwarded-for": "::1" }).kind).toBe(
      "read",
    );
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
