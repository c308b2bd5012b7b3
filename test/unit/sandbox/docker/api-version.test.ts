import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { agreeOnApi, compareVersions } from "../../../../src/sandbox/docker/api-version.js";

describe("compareVersions", () => {
  it.each([
    ["1.41", "1.9", 1],
    ["20.10.24+dfsg1", "20.10.24", 0],
    ["1.1.5+ds1-1+deb12u1", "1.1.12", -1],
    ["1.4.0-rc.2", "1.4.0-rc.3", -1],
    ["1.4.0-rc.3", "1.4.0", -1],
    ["1.4.0~rc3", "1.4.0", -1],
    ["v29.5.1", "29.5.1", 0],
    ["26", "25.0.5", 1],
  ])("puts %s against %s", (a, b, expected) => {
    expect(Math.sign(compareVersions(a, b))).toBe(expected);
  });

  it("orders any two versions by their numbers, and either way round", () => {
    const part = fc.nat(400);
    fc.assert(
      fc.property(fc.tuple(part, part, part), fc.tuple(part, part, part), (a, b) => {
        const byNumber = a.map((left, at) => left - (b[at] ?? 0)).find((difference) => difference !== 0) ?? 0;
        expect(Math.sign(compareVersions(a.join("."), b.join(".")))).toBe(Math.sign(byNumber));
        expect(Math.sign(compareVersions(b.join("."), a.join(".")))).toBe(-Math.sign(byNumber) + 0);
      }),
    );
  });
});

describe("agreeOnApi", () => {
  it("speaks the engine's version while that is known", () => {
    expect(agreeOnApi("1.41", "1.12")).toBe("1.41");
    expect(agreeOnApi("1.43", undefined)).toBe("1.43");
  });

  it("does not follow a newer engine", () => {
    expect(agreeOnApi("1.52", "1.24")).toBe("1.44");
  });

  it("follows an engine that no longer speaks what brig knows", () => {
    expect(agreeOnApi("1.60", "1.50")).toBe("1.50");
  });

  it("refuses an engine that is too old", () => {
    expect(agreeOnApi("1.40", "1.12")).toBeNull();
  });
});
