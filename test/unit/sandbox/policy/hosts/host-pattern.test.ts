import { describe, expect, it } from "vitest";
import { HOST_PRESETS, normalPattern } from "../../../../../src/sandbox/policy/hosts.js";
import { coversHost } from "../../../../../src/sandbox/policy/network.js";

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

  it("has names as long as the domain name system has them", () => {
    const label = (length: number) => "a".repeat(length);
    const name = (length: number) => `${`${label(49)}.`.repeat(5)}${label(length - 250)}`;
    const kindOf = (written: string) => normalPattern(written).kind;
    expect([1, 2, 63].map((length) => kindOf(label(length)))).toEqual(["parsed", "parsed", "parsed"]);
    expect(kindOf(label(64))).toBe("refused");
    expect([kindOf(name(253)), kindOf(name(254))]).toEqual(["parsed", "refused"]);
  });

  it.each([
    ["@npm", ["registry.npmjs.org", "registry.yarnpkg.com"]],
    ["@pypi", ["pypi.org", "files.pythonhosted.org"]],
    ["@debian", ["deb.debian.org", "security.debian.org"]],
    ["@crates", ["crates.io", "index.crates.io", "static.crates.io"]],
    ["@go", ["proxy.golang.org", "sum.golang.org", "storage.googleapis.com"]],
    ["@github", ["github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com"]],
    ["@github", ["objects.githubusercontent.com", "release-assets.githubusercontent.com"]],
    ["@github", ["media.githubusercontent.com"]],
  ])("%s allows what its clients ask for and are redirected to over TLS: %j", (preset, hosts) => {
    for (const host of hosts) {
      expect(coversHost(preset, `${host}:443`)).toBe(true);
      expect(coversHost(preset, `${host}:22`)).toBe(false);
    }
  });

  it("only Debian's hosts are also allowed without TLS", () => {
    const plain = Object.values(HOST_PRESETS).flatMap((hosts) =>
      hosts.filter((host) => host.endsWith(":80")),
    );
    expect(plain).toEqual(["deb.debian.org:80", "security.debian.org:80"]);
  });

  it.each(Object.keys(HOST_PRESETS))("%s lists only hosts that are patterns, and covers itself", (preset) => {
    for (const host of HOST_PRESETS[preset] ?? [])
      expect(normalPattern(host)).toEqual({ kind: "parsed", text: host });
    expect(coversHost(preset, preset)).toBe(true);
  });
});
