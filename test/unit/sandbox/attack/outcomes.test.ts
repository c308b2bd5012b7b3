import { describe, expect, it } from "vitest";
import { parseOutcomes } from "../../../../src/sandbox/attack/weak-twin.js";

describe("what the program prints", () => {
  it("is a line for each attempt, with the names of errors", () => {
    expect(parseOutcomes("mounts\t#1\nsystem-write\t#2 #30\nhost-file\tdone\n")).toEqual({
      mounts: "EPERM",
      "system-write": "ENOENT EROFS",
      "host-file": "done",
    });
  });

  it("names every error that an attempt is refused with", () => {
    const errors = "#1 #2 #11 #13 #16 #18 #26 #30 #61 #93 #99 #101 #111";
    expect(parseOutcomes(`mounts\t${errors}`).mounts).not.toContain("errno");
  });

  it("leaves what was found as it is, though it looks like an error", () => {
    expect(parseOutcomes("device-nodes\tfound /dev/a#1")["device-nodes"]).toBe("found /dev/a#1");
  });

  it("is believed only as far as it is known: other names, second answers and empty lines are not", () => {
    const output = "nonsense\tdone\n__proto__\tdone\nmounts\t#1\nmounts\tdone\nlease\t\nlease\n\n";
    expect(parseOutcomes(output)).toEqual({ mounts: "EPERM" });
  });

  it("is cut where it is longer than the program would print", () => {
    expect(parseOutcomes(`mounts\tfound ${"x".repeat(1e6)}`).mounts?.length).toBe(1000);
  });
});
