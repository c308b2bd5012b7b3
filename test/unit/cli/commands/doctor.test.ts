import { describe, expect, it } from "vitest";
import { withoutDetails } from "../../../../src/cli/commands/doctor.js";
import { check } from "../../../../src/sandbox/docker/diagnosis/check.js";

describe("the known vulnerabilities without -v", () => {
  const fine = check({ id: "cgroups", title: "cgroups", found: "v2" });
  const fixed = check({ id: "CVE-1", title: "CVE-1", found: "fixed" });
  const open = check(
    { id: "CVE-2", title: "CVE-2", found: "not fixed" },
    { status: "warn", advice: "upgrade" },
  );

  it("are one line that names those that may concern the engine", () => {
    expect(withoutDetails([fixed, fine, open])).toEqual([
      fine,
      expect.objectContaining({
        status: "warn",
        found: "1 of 2 may affect this engine: CVE-2",
        advice: expect.stringContaining("brig doctor -v"),
      }),
    ]);
  });

  it("are one good line where none does", () => {
    expect(withoutDetails([fixed]).map(({ status, found }) => [status, found])).toEqual([
      ["ok", "none of 1 affects this engine"],
    ]);
  });
});
