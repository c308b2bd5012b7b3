import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { isLoopbackAddress, parseListenAddress } from "../../../../../src/lib/http/listen.js";
import { addressOf } from "../../../../../src/services/serve/http/connections.js";
import { KnownSites } from "../../../../../src/services/serve/http/known-sites.js";
import { MemoryBudget } from "../../../../../src/services/serve/http/memory-budget.js";
import { RateLimit } from "../../../../../src/services/serve/http/rate-limit.js";
import { OutputBudget } from "../../../../../src/services/serve/processes/output-budget.js";
import { OutputLog } from "../../../../../src/services/serve/processes/output-log.js";

describe("where a service listens", () => {
  it.each([
    ["127.0.0.1:0", { kind: "port", host: "127.0.0.1", port: 0 }],
    ["http://localhost:80/", { kind: "port", host: "localhost", port: 80 }],
    ["[::1]:8017", { kind: "port", host: "::1", port: 8017 }],
    ["Lab.example:8017", { kind: "port", host: "lab.example", port: 8017 }],
    ["unix:/run/x.sock", { kind: "socket", path: "/run/x.sock" }],
    ["unix:x.sock", null],
    ["[127.0.0.1]:80", null],
    ["::1:80", null],
    ["127.0.0.1:65536", null],
    ["127.0.0.1", null],
    ["a b:80", null],
  ])("%s", (text, address) => {
    expect(parseListenAddress(text)).toEqual(address);
  });

  it("only loopback is this machine alone", () => {
    for (const host of ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
      expect(isLoopbackAddress(host)).toBe(true);
    for (const host of ["0.0.0.0", "::", "10.0.0.1", "localhost.evil.test", "::ffff:10.0.0.1"])
      expect(isLoopbackAddress(host)).toBe(false);
  });
});

it("another machine's service is asked for by its address, and not by pages of this machine", () => {
  const sites = new KnownSites({
    ...{ isLocal: false, host: "192.0.2.7", isWildcard: false, names: ["Lab.test"], certificate: () => null },
  });
  const isServed = (headers: Record<string, string>) => {
    try {
      sites.refuseOthers({ headers } as unknown as IncomingMessage);
      return true;
    } catch {
      return false;
    }
  };
  expect(isServed({ host: "192.0.2.7:8017" })).toBe(true);
  expect(isServed({ host: "lab.test", origin: "https://lab.test" })).toBe(true);
  expect(isServed({ host: "192.0.2.8" })).toBe(false);
  expect(isServed({})).toBe(false);
  expect(isServed({ host: "lab.test", origin: "http://localhost:3000" })).toBe(false);
  expect(isServed({ host: "lab.test", origin: "https://lab.test:9" })).toBe(false);
});

it("everybody of one network of IPv6 is one", () => {
  const of = (remoteAddress: string | undefined) => addressOf({ remoteAddress } as Socket);
  expect(of("2001:db8:1:2:3:4:5:6")).toBe(of("2001:db8:1:2::9"));
  expect(of("2001:db8::1")).not.toBe(of("2001:db8:0:1::1"));
  expect([of("::ffff:10.0.0.1"), of("10.0.0.1"), of(undefined)]).toEqual(["10.0.0.1", "10.0.0.1", "local"]);
});

describe("a limit by the minute", () => {
  it("lets so many through at once, and then one after the other", () => {
    let now = 0;
    const limit = new RateLimit(() => now);
    const taken = () => limit.take("a", 6);
    expect(Array.from({ length: 8 }, taken)).toEqual([0, 0, 0, 0, 0, 0, 10, 10]);
    now += 9_000;
    expect(taken()).toBe(1);
    now += 1_000;
    expect([taken(), taken()]).toEqual([0, 10]);
    expect(limit.take("b", 6)).toBe(0);
    now += 60_000;
    expect(Array.from({ length: 7 }, taken)).toEqual([0, 0, 0, 0, 0, 0, 10]);
  });

  it("remembers only so many", () => {
    const limit = new RateLimit(() => 0);
    for (let count = 0; count < 30_000; count++) limit.take(`${count}`, 1);
    expect(limit.knownCount).toBeLessThanOrEqual(10_000);
    expect(limit.take("29999", 1)).toBeGreaterThan(0);
  });
});

describe("the memory of a service with several clients", () => {
  it("is never all one client's", () => {
    const budget = new MemoryBudget(1200, { isShared: () => true });
    const [first, again] = [budget.share("a"), budget.share("a")];
    first.take(400);
    again.take(200);
    expect(() => again.take(1)).toThrow(/their share/);
    const second = budget.share("b");
    second.take(300);
    expect(() => second.take(1)).toThrow(/their share/);
    budget.share("c").take(150);
    first[Symbol.dispose]();
    second.take(100);
  });

  it("is less by what processes have printed, of which the loudest client loses most", () => {
    const outputs = new OutputBudget(1_000_000);
    const ofClient = () => new OutputBudget(Number.MAX_SAFE_INTEGER, outputs);
    const [loud, quiet] = [ofClient(), ofClient()];
    const logs = Array.from({ length: 20 }, () => new OutputLog(undefined, new OutputBudget(200_000, loud)));
    const small = new OutputLog(undefined, new OutputBudget(200_000, quiet));
    small.add("stdout", Buffer.alloc(50_000));
    for (let round = 0; round < 20; round++) for (const log of logs) log.add("stdout", Buffer.alloc(50_000));
    expect(outputs.usedBytes).toBeLessThanOrEqual(1_000_000);
    expect(outputs.usedBytes).toBeGreaterThan(800_000);
    expect(quiet.usedBytes).toBeGreaterThanOrEqual(50_000);
    const budget = new MemoryBudget(1_200_000, { outputs });
    expect(() => budget.share().take(500_000)).toThrow(/may take/);
    for (const log of logs) log.clear();
    budget.share().take(500_000);
    expect(loud.usedBytes).toBe(0);
  });
});
