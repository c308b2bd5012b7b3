import { describe, expect, it } from "vitest";
import { checkAdvisories, exposure } from "../../../../../src/sandbox/docker/diagnosis/advisories.js";
import type { EngineHealth, EngineInfo } from "../../../../../src/sandbox/docker/engine-types.js";

const dnsLeak = { fixedIn: ["23.0.11", "25.0.5", "26.0.0"] };
const leakedDescriptor = { fixedIn: ["1.1.12"], fixedPackages: ["1.1.5+ds1-1+deb12u1"] };
const mountRaces = { fixedIn: ["1.2.8", "1.3.3", "1.4.0-rc.3"] };

describe("exposure", () => {
  it.each([
    ["23.0.10", "open"],
    ["23.0.11", "fixed"],
    ["24.0.9", "open"],
    ["25.0.4", "open"],
    ["25.0.5", "fixed"],
    ["25.1.0", "open"],
    ["26.0.0", "fixed"],
    ["29.5.1", "fixed"],
  ])("counts a fix only within its release line: %s is %s", (version, expected) => {
    expect(exposure(version, dnsLeak)).toBe(expected);
  });

  it.each([
    ["1.1.15", "open"],
    ["1.2.7", "open"],
    ["1.2.8", "fixed"],
    ["1.3.2", "open"],
    ["1.4.0-rc.2", "open"],
    ["1.4.0-rc.3", "fixed"],
    ["1.4.0", "fixed"],
  ])("reads pre-releases: %s is %s", (version, expected) => {
    expect(exposure(version, mountRaces)).toBe(expected);
  });

  it.each([
    ["1.1.5+ds1-1+deb12u1", "fixed"],
    ["1.1.5+ds1-1+deb12u3", "fixed"],
    ["1.1.5+ds1-1", "unknown"],
    ["1.1.7-0ubuntu1~22.04.2", "unknown"],
    ["1.1.8.el9", "unknown"],
    ["1.1.11", "open"],
    ["1.1.12-0ubuntu3", "fixed"],
  ])("does not take a distribution's number for the upstream one: %s is %s", (version, expected) => {
    expect(exposure(version, leakedDescriptor)).toBe(expected);
  });
});

describe("checkAdvisories", () => {
  const health: EngineHealth = {
    limits: { memory: true, swap: true, cpu: true, pids: true },
    clockSkewMs: 0,
    authorizationPlugins: [],
  };
  const info = (components: Record<string, string>, product = "docker") =>
    ({ product, components }) as EngineInfo;

  it("finds nothing in a current engine", () => {
    const checks = checkAdvisories(info({ Engine: "29.5.1", runc: "1.3.3" }), health);
    expect(checks.length).toBeGreaterThan(4);
    expect(checks.filter(({ status }) => status !== "ok")).toEqual([]);
  });

  it("says for each weakness of an old engine what to do", () => {
    const checks = checkAdvisories(info({ Engine: "20.10.0", runc: "1.0.0" }), health);
    const open = checks.filter(({ status }) => status === "warn");
    expect(open.map(({ id }) => id)).toEqual(
      expect.arrayContaining(["CVE-2024-21626", "CVE-2025-31133", "CVE-2024-29018", "CVE-2026-41567"]),
    );
    for (const { advice } of open) expect(advice).toMatch(/\w/);
  });

  it("counts a weakness of authorization plugins only where there are some", () => {
    const status = (plugins: string[]) =>
      checkAdvisories(info({ Engine: "28.0.0" }), { ...health, authorizationPlugins: plugins }).find(
        ({ id }) => id === "CVE-2026-34040",
      )?.status;
    expect(status([])).toBe("ok");
    expect(status(["opa"])).toBe("warn");
  });

  it("does not hold Docker's weaknesses against Podman", () => {
    const checks = checkAdvisories(info({ "Podman Engine": "4.3.1", runc: "1.0.0" }, "podman"), health);
    expect(checks.map(({ id }) => id)).toEqual(["CVE-2024-21626", "CVE-2025-31133"]);
  });
});
