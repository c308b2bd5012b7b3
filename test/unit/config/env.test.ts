import { describe, expect, it, vi } from "vitest";
import { readEnvironment } from "../../../src/config/env.js";

describe("readEnvironment", () => {
  it.skipIf(process.getuid?.() !== 0)(
    "takes the root directory as the home of a user without one [needs root]",
    () => {
      vi.stubEnv("HOME", undefined);
      process.seteuid?.(54_321);
      try {
        expect(readEnvironment({})).toMatchObject({ home: "/", brigHome: "/.brig" });
      } finally {
        process.seteuid?.(0);
      }
    },
  );

  it("puts brig's home under the user's home unless BRIG_HOME says otherwise", () => {
    expect(readEnvironment({ HOME: "/h" }).brigHome).toBe("/h/.brig");
    expect(readEnvironment({ HOME: "/h", BRIG_HOME: "/b" }).brigHome).toBe("/b");
  });

  it("counts an empty variable as unset", () => {
    const environment = readEnvironment({ HOME: "/h", BRIG_HOME: "", OPENAI_API_KEY: "", NO_COLOR: "" });
    expect(environment.brigHome).toBe("/h/.brig");
    expect(environment.openaiApiKey).toBeUndefined();
    expect(environment.forbidsColor).toBe(false);
  });

  it.each([
    ["1", true],
    ["true", true],
    ["0", false],
    ["false", false],
    ["", false],
  ])("reads CI=%j as %j", (value, expected) => {
    expect(readEnvironment({ CI: value }).isContinuousIntegration).toBe(expected);
  });

  it("cannot be changed by its readers", () => {
    const environment = readEnvironment({ HOME: "/h" });
    expect(Object.isFrozen(environment)).toBe(true);
    expect(Object.isFrozen(environment.variables)).toBe(true);
  });
});
