import { describe, expect, it } from "vitest";
import { BuildSteps } from "../../../../src/command/image/build-progress.js";

describe("the estimate of a build", () => {
  it("begins once a step has ended, and is that the others take as long", () => {
    const steps = new BuildSteps(4, 1000);
    expect(steps.text(3000)).toBe("building the image, 2.0 s");
    expect(steps.take("[1/4] FROM debian", 1000)).toBe(true);
    expect(steps.leftMs(3000)).toBeNull();
    expect(steps.take("[2/4] RUN one", 5000)).toBe(true);
    expect(steps.leftMs(5000)).toBe(12_000);
    expect(steps.leftMs(7000)).toBe(10_000);
    expect(steps.text(7000)).toBe("building the image: step 2 of 4, 6.0 s, about 10.0 s left: RUN one");
  });

  it("is never less than nothing", () => {
    const steps = new BuildSteps(2, 0);
    steps.take("Step 1/2 : FROM debian", 0);
    steps.take("Step 2/2 : RUN one", 1000);
    expect(steps.leftMs(60_000)).toBe(0);
    expect(steps.text(60_000)).toBe("building the image: step 2 of 2, 1 m 00 s: RUN one");
  });

  it("counts no line that is not the beginning of a step", () => {
    const steps = new BuildSteps(2, 0);
    for (const line of ["copy /context /", "[internal] load", "Step by step", "[1/x] RUN", "1/2"])
      expect(steps.take(line, 5)).toBe(false);
    expect(steps.take("[build 1/2] RUN one", 5)).toBe(true);
  });
});
