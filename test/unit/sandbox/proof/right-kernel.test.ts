import { expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { requireStatx } from "../../../../src/sandbox/connect-and-prove.js";
import type { Kernel } from "../../../../src/sandbox/plan/plan.js";
import { parseReport } from "../../../../src/sandbox/proof/kernel-report.js";
import { cannotLoadRunner, onRightKernel, WrongKernel } from "../../../../src/sandbox/proof/right-kernel.js";
import { asBytes } from "./kernel-sections.js";

const refusal = new BrigError("weaker than its policy", { code: "policy.not-enforced" });

it("opens once where the expected kernel answers", async () => {
  const tried: Kernel[] = [];
  await onRightKernel("shared", async (kernel) => void tried.push(kernel));
  expect(tried).toEqual(["shared"]);
});

it.each([
  ["shared", "gvisor"],
  ["gvisor", "shared"],
] as const)("where not %s but another kernel answers, opens for it", async (expected, actual) => {
  const opened = await onRightKernel(expected, async (kernel) => {
    if (kernel !== actual) throw new WrongKernel("", { cause: refusal });
    return kernel;
  });
  expect(opened).toBe(actual);
});

it("ends with the refusal when neither kernel seems to be the right one, after two attempts", async () => {
  let attempts = 0;
  const open = async () => {
    attempts++;
    throw new WrongKernel("", { cause: refusal });
  };
  await expect(onRightKernel("shared", open)).rejects.toBe(refusal);
  expect(attempts).toBe(2);
});

it("does not try again after any other error", async () => {
  let attempts = 0;
  const open = async () => {
    attempts++;
    throw refusal;
  };
  await expect(onRightKernel("shared", open)).rejects.toBe(refusal);
  expect(attempts).toBe(1);
});

it("knows by the engine's words a runtime that cannot read the runner", () => {
  const error = (message: string) => new BrigError(message, { code: "engine.failed" });
  const said = "starting sandbox: creating process: failed to load /.brig/runner: permission denied: unknown";
  expect(cannotLoadRunner(error(`cannot start the container: ${said} (HTTP 400)`))).toBe(true);
  expect(cannotLoadRunner(error("failed to load /.brig/runner-gvisor: permission denied"))).toBe(false);
  expect(cannotLoadRunner(error("permission denied"))).toBe(false);
  expect(cannotLoadRunner(new Error(said))).toBe(false);
});

it("refuses a gVisor that answers EINVAL to statx, and says what to install", () => {
  const report = (sections: [string, string][]) => parseReport(asBytes(new Map(sections)));
  const uname: [string, string] = ["uname", "4.4.0\n#1 SMP Sun Jan 10 15:06:54 PST 2016"];
  expect(() => requireStatx(report([uname, ["probe/statx", "22"]]), "gv")).toThrow(
    expect.objectContaining({
      code: "engine.too-old",
      message: expect.stringMatching(/"gv" is a release of gVisor.*statx.*ls, stat/),
      hint: expect.stringContaining("Debian 13's package runsc"),
    }),
  );
  expect(() => requireStatx(report([["probe/statx", "1"]]), "runc")).toThrow(/statx/);
  for (const errno of ["0", "38"])
    expect(() => requireStatx(report([["probe/statx", errno]]), "runc")).not.toThrow();
});
