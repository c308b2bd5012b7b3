import { describe, expect, it } from "vitest";
import { normalPattern } from "../../../../src/policy/hosts/host-pattern.js";
import { HOST_PRESETS } from "../../../../src/policy/hosts/host-presets.js";
import { coversHost } from "../../../../src/policy/network.js";

describe("an entry of an allow-list", () => {
  it.each([
    ["a.org", "a.org"],
    ["a.org", "a.org:443"],
    ["a.org:22", "a.org:22"],
    ["*.a.org", "x.a.org:80"],
    ["*.a.org", "*.y.a.org"],
    ["@public", "a.org"],
    ["@public", "*.a.org"],
    ["@npm", "registry.npmjs.org:443"],
    ["*.npmjs.org", "registry.npmjs.org:443"],
    ["10.0.0.0/8", "10.1.0.0/16"],
    ["10.0.0.0/8", "10.1.2.3:80"],
    ["[fd00::/8]", "[fd00::1]"],
    ["host.internal:80", "host.internal:80"],
  ])("%s covers %s", (allowed, wanted) => {
    expect(coversHost(allowed, wanted)).toBe(true);
  });

  it.each([
    ["a.org:443", "a.org"],
    ["a.org:443", "a.org:80"],
    ["*.a.org", "a.org"],
    ["*.a.org", "xa.org"],
    ["*.a.org", "x.a.org.evil.example"],
    ["x.a.org", "*.a.org"],
    ["*.internal", "host.internal:80"],
    ["@public", "host.internal:80"],
    ["@public", "10.0.0.1"],
    ["a.org", "@public"],
    ["@npm", "registry.npmjs.org"],
    ["@npm", "@pypi"],
    ["10.1.0.0/16", "10.0.0.0/8"],
    ["10.0.0.0/8", "[a00::/8]"],
    ["0.0.0.0/0", "[::1]"],
    ["10.0.0.1", "a.org"],
  ])("%s does not cover %s", (allowed, wanted) => {
    expect(coversHost(allowed, wanted)).toBe(false);
  });

  it("without a port allows only the protocols of the web, so it does not cover another port by name", () => {
    expect(coversHost("a.org", "a.org:5432")).toBe(false);
  });

  it.each(Object.keys(HOST_PRESETS))("%s lists only hosts that are patterns, and covers itself", (preset) => {
    for (const host of HOST_PRESETS[preset] ?? [])
      expect(normalPattern(host)).toEqual({ kind: "parsed", text: host });
    expect(coversHost(preset, preset)).toBe(true);
  });
});
