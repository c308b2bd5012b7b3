import { describe, expect, it } from "vitest";
import {
  decideAddress,
  decideTarget,
  portsOf,
  rulesOf,
} from "../../../../../src/sandbox/egress/rules/decide.js";
import { parseAuthority, parseTarget } from "../../../../../src/sandbox/egress/rules/target.js";

const own = ["203.0.114.7", "192.168.1.5"];

describe("a target is decided by its name", () => {
  it.each([
    ["*.github.com", "api.github.com:443"],
    ["*.github.com", "API.GitHub.com.:443"],
    ["example.com", "example.com:8443"],
    ["@npm", "registry.npmjs.org:443"],
    ["@public", "example.com:80"],
    ["@public", "1.2.3.4:80"],
    ["10.0.0.0/8", "10.1.2.3:80"],
    ["127.0.0.1:8080", "127.0.0.1:8080"],
    ["127.0.0.1:8080", "[::ffff:127.0.0.1]:8080"],
    ["192.168.1.5", "192.168.1.5:80"],
    ["host.internal:11434", "host.internal:11434"],
  ])("%s allows %s", (host, wanted) => {
    expect(decided(host, wanted)).toMatchObject({ kind: "allowed", rule: host });
  });

  it.each([
    ["", "example.com:443"],
    ["*.github.com", "github.com:443"],
    ["*.github.com", "xgithub.com:443"],
    ["*.github.com", "api.github.com.evil.example:443"],
    ["example.com:443", "example.com:80"],
    ["@npm", "registry.npmjs.org:80"],
    ["@public", "host.internal:80"],
    ["example.com", "1.2.3.4:443"],
  ])("%j does not allow %s", (host, wanted) => {
    expect(decided(host, wanted)).toEqual({ kind: "denied", denial: { kind: "no-rule" } });
  });

  it.each([
    ["@public", "10.0.0.1:80", "private"],
    ["@public", "127.0.0.1:80", "loopback"],
    ["@public", "203.0.114.7:80", "own"],
    ["192.168.0.0/16", "192.168.1.5:80", "own"],
    ["127.0.0.0/8", "127.0.0.1:80", "loopback"],
    ["0.0.0.0/0", "169.254.169.254:80", "metadata"],
  ])("%s does not allow the address %s, since it is %s", (host, wanted, scope) => {
    expect(decided(host, wanted)).toMatchObject({ denial: { kind: "address", scope } });
  });

  it("allows other protocols only on a port that a rule names, and that is none of the web's", () => {
    expect(decided("db.example:5432", "db.example:5432")).toMatchObject({ anyProtocol: true });
    expect(decided("db.example", "db.example:5432")).toMatchObject({ anyProtocol: false });
    expect(decided("db.example:443", "db.example:443")).toMatchObject({ anyProtocol: false });
  });

  it("has the ports of the web for a name without a port, besides those that are named", () => {
    expect(portsOf(rulesOf(["*.a.example", "x.a.example:22"]), "x.a.example")).toEqual([80, 443, 22]);
    expect(portsOf(rulesOf(["*.a.example"]), "b.example")).toEqual([]);
  });
});

describe("a target that can be read in two ways is none", () => {
  it.each([
    "127.1",
    "0x7f.1",
    "0x7f000001",
    "2130706433",
    "0177.0.0.1",
    "1.2.3.4.",
    "fe80::1%eth0",
    "[fe80::1%25eth0]",
    "evil\0.github.com",
    "user@github.com",
    "github.com/x",
    "bücher.example",
    "a..b",
    "",
    "a b",
    "x".repeat(300),
    `${"a.".repeat(150)}example`,
  ])("%j", (text) => {
    expect(parseTarget(text)).toBeNull();
  });

  it.each(["example.com", "example.com:0", "example.com:65536", "example.com:4x", "::1:80", "a:1:2"])(
    "as host and port: %s",
    (text) => {
      expect(parseAuthority(text)).toBeNull();
    },
  );
});

describe("an address that an allowed name stands for", () => {
  it.each(["1.1.1.1", "2606:4700::1111"])("may be the public %s", (address) => {
    expect(dialled(["example.com"], address)).toBeNull();
  });

  it.each([
    ["127.0.0.1", "loopback"],
    ["0.0.0.0", "loopback"],
    ["10.0.0.1", "private"],
    ["172.31.0.1", "private"],
    ["100.64.0.1", "private"],
    ["192.168.1.5", "own"],
    ["203.0.114.7", "own"],
    ["169.254.1.1", "link-local"],
    ["169.254.169.254", "metadata"],
    ["168.63.129.16", "metadata"],
    ["fd00:ec2::254", "metadata"],
    ["224.0.0.1", "multicast"],
    ["255.255.255.255", "reserved"],
    ["198.18.0.1", "reserved"],
    ["::1", "loopback"],
    ["::", "loopback"],
    ["fe80::1", "link-local"],
    ["fd00::1", "private"],
    ["ff02::1", "multicast"],
    ["64:ff9b::7f00:1", "reserved"],
    ["64:ff9b:1::1", "reserved"],
    ["2002:7f00:1::", "reserved"],
    ["2001:0:1::1", "reserved"],
    ["::7f00:1", "reserved"],
    ["2001:db8::1", "reserved"],
  ])("may not be %s, which is %s", (address, scope) => {
    expect(dialled(["example.com", "@public"], address)).toEqual({ kind: "address", address, scope });
  });

  it("may be a private one if a rule names it or its range, for this port", () => {
    expect(dialled(["example.com", "10.0.0.0/8"], "10.0.0.1")).toBeNull();
    expect(dialled(["example.com", "10.0.0.0/8:443"], "10.0.0.1")).toBeNull();
    expect(dialled(["example.com", "10.0.0.0/8:80"], "10.0.0.1")).toMatchObject({ scope: "private" });
  });

  it("may be one of this machine, or of a metadata service, only if a rule names just this address", () => {
    expect(dialled(["example.com", "127.0.0.0/8"], "127.0.0.1")).toMatchObject({ scope: "loopback" });
    expect(dialled(["example.com", "127.0.0.1"], "127.0.0.1")).toBeNull();
    expect(dialled(["example.com", "169.254.0.0/16"], "169.254.169.254")).toMatchObject({
      scope: "metadata",
    });
    expect(dialled(["example.com", "169.254.169.254"], "169.254.169.254")).toBeNull();
  });
});

function decided(host: string, wanted: string) {
  const endpoint = parseAuthority(wanted);
  if (endpoint === null) throw new Error(`${wanted} cannot be read`);
  return decideTarget(rulesOf(host === "" ? [] : [host]), endpoint, () => own);
}

function dialled(hosts: readonly string[], address: string) {
  const target = { kind: "name", name: "example.com" } as const;
  return decideAddress(rulesOf(hosts), { target, port: 443, address, ownAddresses: () => own });
}
