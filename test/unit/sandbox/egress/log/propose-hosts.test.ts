import { describe, expect, it } from "vitest";
import type { EgressEntry } from "../../../../../src/sandbox/egress/log/egress-entry.js";
import { proposeHosts } from "../../../../../src/sandbox/egress/log/propose-hosts.js";
import { parseNetwork } from "../../../../../src/sandbox/policy/network.js";

function entry(given: Partial<EgressEntry>): EgressEntry {
  return {
    ...{
      startedAtMs: 0,
      phase: "run",
      count: 1,
      callId: "call_1",
      program: "curl",
      way: "connect",
      host: "a.example",
      port: 443,
    },
    ...{ method: null, path: null, outcome: "allowed", reason: null, message: null, rule: "@public" },
    ...{ bytesOut: 0, bytesIn: 0, durationMs: 0, ...given },
  };
}

describe("the proposal of a list", () => {
  it("has each host with its port once, and who needed it", () => {
    const proposal = proposeHosts([
      entry({}),
      entry({ callId: "call_2", program: "git" }),
      entry({ host: "A.example" }),
      entry({ port: 8443 }),
      entry({ host: "2606:4700::1111" }),
    ]);
    expect(proposal.network).toBe("allowlist:[2606:4700::1111]:443,a.example:443,a.example:8443");
    expect(proposal.entries[1]).toEqual({
      ...{ entry: "a.example:443", hosts: ["a.example:443"] },
      ...{ callIds: ["call_1", "call_2"], programs: ["curl", "git"] },
    });
    expect(parseNetwork(proposal.network)).toMatchObject({ kind: "parsed" });
  });

  it("leaves out what a set-up has reached, or tried to", () => {
    const { network, left } = proposeHosts([
      entry({}),
      entry({ phase: "setup", host: "setup.example" }),
      entry({ phase: "setup", host: "denied.example", outcome: "denied" }),
    ]);
    expect({ network, left }).toEqual({ network: "allowlist:a.example:443", left: [] });
  });

  it("names a preset for the hosts that it has, on its ports only", () => {
    const { network, entries } = proposeHosts([
      entry({ host: "registry.npmjs.org", program: "npm" }),
      entry({ host: "registry.npmjs.org", port: 80 }),
      entry({ host: "github.com" }),
      entry({ host: "github.com", port: 22 }),
    ]);
    expect(network).toBe("allowlist:@github,@npm,github.com:22,registry.npmjs.org:80");
    expect(entries[1]).toMatchObject({ entry: "@npm", hosts: ["registry.npmjs.org:443"], programs: ["npm"] });
  });

  it("leaves out what was not reached, and says why", () => {
    const proposal = proposeHosts([
      entry({ host: "10.0.0.1", port: 5432, outcome: "denied", reason: "address", message: "private" }),
      entry({ host: "down.example", outcome: "failed", reason: "ECONNREFUSED" }),
      entry({ host: "a.example", outcome: "failed", reason: "ECONNRESET" }),
      entry({ host: "looked.example", port: null, way: "name", outcome: "denied", reason: "no-rule" }),
      entry({}),
    ]);
    expect(proposal.network).toBe("allowlist:a.example:443");
    expect(proposal.left).toEqual([
      { host: "10.0.0.1:5432", message: "private" },
      { host: "down.example:443", message: "ECONNREFUSED" },
    ]);
  });

  it("proposes nothing that a hostile session file could smuggle in", () => {
    const hosts = ["*", "*.com", "@public", "a.example,evil.example", "a example", "a.example:443,b", "\n"];
    const proposal = proposeHosts(hosts.map((host) => entry({ host })));
    expect(proposal).toMatchObject({ network: "allowlist:", entries: [] });
  });

  it("says that it is not complete when hosts were only counted", () => {
    const isComplete = (given: Partial<EgressEntry>) => proposeHosts([entry(given)]).isComplete;
    expect(isComplete({})).toBe(true);
    expect(isComplete({ host: null, port: null })).toBe(false);
    expect(isComplete({ host: null, port: null, outcome: "denied" })).toBe(true);
  });
});
