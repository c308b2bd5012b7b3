import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseReport } from "../../../../src/sandbox/proof/kernel-report.js";
import { asBytes, interfaces, ipv6Route } from "./kernel-sections.js";

const parse = (sections: Record<string, string>) => parseReport(asBytes(new Map(Object.entries(sections))));

describe("a report", () => {
  it("without sections knows nothing, and says so", () => {
    expect(parse({})).toEqual({
      kernel: "shared",
      identity: {
        uids: null,
        gids: null,
        groups: null,
        noNewPrivileges: null,
        seccompMode: null,
        capabilities: new Map(),
      },
      mounts: null,
      resourceLimits: new Map(),
      interfaces: null,
      routedInterfaces: null,
      hostname: null,
      environment: null,
      processes: null,
      settings: new Map(),
      cgroup: { memoryBytes: null, swapBytes: null, pids: null, cpus: null },
      probes: new Map(),
      directories: new Map(),
    });
  });

  it("reads which programs run, whatever they call themselves", () => {
    expect(parse({ processes: "runner\0runner\0a\nb \0" }).processes).toEqual(["runner", "runner", "a\nb "]);
    expect(parse({ processes: "" }).processes).toEqual([]);
  });

  it("reads who the runner is", () => {
    const status = [
      "Name:\trunner",
      "Uid:\t1000\t1000\t1000\t1000",
      "Gid:\t1000\t1000\t1000\t1000",
      "Groups:\t1000 27 ",
      "CapInh:\t0000000000000000",
      "CapPrm:\t0000000000000000",
      "CapEff:\t0000000000000000",
      "CapBnd:\t00000000a80425fb",
      "CapAmb:\t0000000000000000",
      "NoNewPrivs:\t1",
      "Seccomp:\t2",
    ].join("\n");
    expect(parse({ "/proc/self/status": status }).identity).toEqual({
      uids: [1000, 1000, 1000, 1000],
      gids: [1000, 1000, 1000, 1000],
      groups: [1000, 27],
      noNewPrivileges: true,
      seccompMode: 2,
      capabilities: new Map([
        ["CapInh", 0n],
        ["CapPrm", 0n],
        ["CapEff", 0n],
        ["CapBnd", 0xa80425fbn],
        ["CapAmb", 0n],
      ]),
    });
  });

  it("takes no half a line for a fact", () => {
    const { identity } = parse({
      "/proc/self/status":
        "Uid:\t1000\nGid: x y z w\nGroups:\t1e3\nCapEff:\t0xff\nNoNewPrivs:\tyes\nSeccomp:\ttwo\n",
    });
    expect(identity).toEqual({
      uids: null,
      gids: null,
      groups: null,
      noNewPrivileges: null,
      seccompMode: null,
      capabilities: new Map(),
    });
  });

  it("reads resource limits, unlimited ones too", () => {
    const table = [
      "Limit                     Soft Limit           Hard Limit           Units     ",
      "Max cpu time              unlimited            unlimited            seconds   ",
      "Max core file size        0                    0                    bytes     ",
      "Max open files            1024                 4096                 files     ",
      "Max nice priority         0                    0                    ",
    ].join("\n");
    expect([...parse({ "/proc/self/limits": table }).resourceLimits]).toEqual([
      ["Max cpu time", { soft: Number.POSITIVE_INFINITY, hard: Number.POSITIVE_INFINITY }],
      ["Max core file size", { soft: 0, hard: 0 }],
      ["Max open files", { soft: 1024, hard: 4096 }],
      ["Max nice priority", { soft: 0, hard: 0 }],
    ]);
  });

  it("reads interfaces, and those with a route of either IP version", () => {
    const report = parse({
      "/proc/net/dev": interfaces(["lo", "eth0", "tunl0"]),
      "/proc/net/route": "Iface\tDestination\tGateway\neth0\t00000000\t010011AC\t0003\neth0\t000011AC\t0\n",
      "/proc/net/ipv6_route": ipv6Route("lo") + ipv6Route("eth1"),
    });
    expect(report.interfaces).toEqual(["lo", "eth0", "tunl0"]);
    expect(report.routedInterfaces).toEqual(["eth0", "lo", "eth1"]);
  });

  it("knows no routes without a table, and none from empty ones", () => {
    expect(parse({ "/proc/net/route": "Iface\n" }).routedInterfaces).toEqual([]);
    expect(parse({ "/proc/net/dev": "" }).routedInterfaces).toBeNull();
  });

  it("reads the limits of cgroup v1, where swap is counted together with memory", () => {
    const { cgroup } = parse({
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n",
      "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": "134217728\n",
      "/sys/fs/cgroup/pids/pids.max": "64\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "150000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    });
    expect(cgroup).toEqual({ memoryBytes: 134217728, swapBytes: 0, pids: 64, cpus: 1.5 });
  });

  it("reads cgroup v1 without limits as without limits", () => {
    const { cgroup } = parse({
      "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": "9223372036854771712\n",
      "/sys/fs/cgroup/pids/pids.max": "max\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    });
    const none = Number.POSITIVE_INFINITY;
    expect(cgroup).toEqual({ memoryBytes: none, swapBytes: none, pids: none, cpus: none });
  });

  it("reads the limits of cgroup v2", () => {
    const files = {
      "memory.max": "1073741824\n",
      "memory.swap.max": "0\n",
      "pids.max": "max\n",
      "cpu.max": "200000 100000\n",
    };
    const sections = Object.entries(files).map(([file, text]) => [`/sys/fs/cgroup/${file}`, text]);
    expect(parse(Object.fromEntries(sections)).cgroup).toEqual({
      memoryBytes: 1073741824,
      swapBytes: 0,
      pids: Number.POSITIVE_INFINITY,
      cpus: 2,
    });
    expect(
      parse({ "/sys/fs/cgroup/pids.max": "9", "/sys/fs/cgroup/cpu.max": "max 100000" }).cgroup.cpus,
    ).toBe(Number.POSITIVE_INFINITY);
  });

  it("takes an empty or odd limit for unknown, never for none", () => {
    for (const text of ["", "lots", "-5", "1 2 3", "0x10"]) {
      const { cgroup } = parse({ "/sys/fs/cgroup/memory.max": text, "/sys/fs/cgroup/cpu.max": text });
      expect(cgroup.memoryBytes).toBeNull();
      expect(cgroup.cpus).toBeNull();
    }
  });

  it("reads the answers to forbidden requests and the identity of directories", () => {
    const report = parse({
      "probe/mount": "1",
      "probe/clone3": "38\n",
      "probe/odd": "-1",
      "stat//repo": "65024 2146308 42755 1000 100 1795383694000000001",
      "stat//repo/.git": "garbage",
    });
    expect([...report.probes]).toEqual([["mount", 1]]);
    expect([...report.directories]).toEqual([
      [
        "/repo",
        {
          dev: "65024",
          ino: "2146308",
          mode: 0o42755,
          uid: 1000,
          gid: 100,
          changedNs: 1_795_383_694_000_000_001n,
        },
      ],
    ]);
  });

  it("does not read a section without end", () => {
    const report = parse({ "/proc/sys/kernel/hostname": "x".repeat(1024 * 1024 + 1) });
    expect(report.hostname).toBeNull();
  });

  it("of arbitrary bytes is parsed without failing, and never claims a privilege is absent", () => {
    const name = fc.constantFrom(
      "/proc/self/status",
      "/proc/self/mountinfo",
      "/proc/self/limits",
      "/proc/net/dev",
      "/proc/net/route",
      "/proc/net/ipv6_route",
      "/sys/fs/cgroup/memory.max",
      "/sys/fs/cgroup/cpu.max",
      "probe/mount",
      "stat//repo",
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.uint8Array({ maxLength: 200 }))), (sections) => {
        const report = parseReport(new Map(sections));
        expect(report.identity.noNewPrivileges).not.toBe(true);
        expect(report.identity.capabilities.size).toBe(0);
      }),
    );
  });
});
