import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  describeNetwork,
  type NetworkScope,
  parseNetwork,
  reasonAfterName,
} from "../../../../src/sandbox/policy/network.js";

describe("a network setting", () => {
  it("is none or full by that name only", () => {
    expect(parseNetwork("none")).toEqual({ kind: "parsed", network: { kind: "none" } });
    expect(parseNetwork("full")).toEqual({ kind: "parsed", network: { kind: "full" } });
    for (const text of ["", "None", "FULL", "host", "bridge", "none ", "allowlist"])
      expect(parseNetwork(text).kind, text).toBe("refused");
  });

  it("with an empty allow-list allows no host, and is not full", () => {
    expect(parseNetwork("allowlist:")).toEqual({ kind: "parsed", network: { kind: "allowlist", hosts: [] } });
    expect(parseNetwork("allowlist: ,")).toEqual({
      kind: "parsed",
      network: { kind: "allowlist", hosts: [] },
    });
  });

  it.each([
    "example.com",
    "*.example.com",
    "example.com:443",
    "localhost",
    "a-b.c_d.e",
    "xn--bcher-kva.example",
    "10.0.0.1",
    "10.0.0.0/8:5432",
    "[::1]",
    "[fd00::/8]:443",
    "host.internal:11434",
    "@npm",
    "@public",
  ])("takes the host %s", (host) => {
    expect(parseNetwork(`allowlist:${host}`)).toEqual({
      kind: "parsed",
      network: { kind: "allowlist", hosts: [host] },
    });
  });

  it.each([
    ["EXAMPLE.com:0443", "example.com:443"],
    ["[0:0::1]:80", "[::1]:80"],
    ["[::ffff:127.0.0.1]", "127.0.0.1"],
    ["10.0.0.1/32", "10.0.0.1"],
    ["@NPM", "@npm"],
  ])("has one spelling of %s: %s", (written, normal) => {
    expect(parseNetwork(`allowlist:${written}`)).toEqual({
      kind: "parsed",
      network: { kind: "allowlist", hosts: [normal] },
    });
  });

  it("gives its reason without the setting too, for a sentence that has named it", () => {
    const refused = (text: string) => {
      const parsed = parseNetwork(text);
      return parsed.kind === "refused" ? [parsed.reason, reasonAfterName(text, parsed.reason)] : [];
    };
    const [whole, rest] = refused("allow");
    expect(whole).toBe(`"allow" is not a network setting: ${rest}`);
    expect(rest).toMatch(/^use none, full/);
    const [ofHost, same] = refused("allowlist:*");
    expect(same).toBe(ofHost);
  });

  it.each([
    ["*", "write @public for every public host"],
    ["@nmp", "lists of hosts that brig knows: @npm"],
    ["host.internal", "needs a port"],
  ])("refuses %s, and says what to write instead", (host, reason) => {
    expect(parseNetwork(`allowlist:${host}`)).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  it.each([
    "*.*.example.com",
    "ex*mple.com",
    ".example.com",
    "example.com.",
    "user@example.com",
    "https://example.com",
    "example.com/path",
    "example.com:0",
    "example.com:65536",
    "example.com:",
    "-a.example",
    "evil\0.github.com",
    "bücher.example",
    `${"a".repeat(64)}.example`,
    `${"a.".repeat(127)}example`,
    "::1",
    "[::1",
    "[fe80::1%eth0]",
    "[::ffff:10.0.0.0/104]",
    "10.0.0.0/33",
    "127.1",
    "0x7f.1",
    "2130706433",
    "example.0x1",
    "[example.com]",
  ])("refuses the host %j and says so", (host) => {
    expect(parseNetwork(`allowlist:good.example,${host}`)).toMatchObject({
      kind: "refused",
      reason: expect.stringContaining("is not a host name"),
    });
  });

  it("learns with every public host, and with those that are named besides", () => {
    expect(parseNetwork("learn")).toEqual({
      kind: "parsed",
      network: { kind: "allowlist", hosts: ["@public"], learns: true },
    });
    const { network } = parseNetwork("learn:10.0.0.1:5432") as { network: NetworkScope };
    expect(network).toMatchObject({ hosts: ["@public", "10.0.0.1:5432"] });
    for (const text of ["learn", "learn:10.0.0.1:5432"]) {
      const parsed = parseNetwork(text);
      expect(parsed.kind === "parsed" && describeNetwork(parsed.network)).toBe(text);
    }
    expect(parseNetwork("learn:*")).toMatchObject({ kind: "refused" });
    expect(parseNetwork("learning")).toMatchObject({ kind: "refused" });
  });

  it("reads what it writes", () => {
    const label = fc.stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/);
    const host = fc.tuple(
      fc.boolean(),
      fc.array(label, { minLength: 1, maxLength: 4 }),
      fc.option(fc.integer({ min: 1, max: 65535 })),
    );
    fc.assert(
      fc.property(fc.array(host), (hosts) => {
        const written = hosts.map(
          ([any, labels, port]) => `${any ? "*." : ""}${labels.join(".")}${port ? `:${port}` : ""}`,
        );
        const parsed = parseNetwork(`allowlist:${written.join(",")}`);
        expect(parsed).toEqual({ kind: "parsed", network: { kind: "allowlist", hosts: written } });
        if (parsed.kind === "parsed") expect(parseNetwork(describeNetwork(parsed.network))).toEqual(parsed);
      }),
    );
  });
});
