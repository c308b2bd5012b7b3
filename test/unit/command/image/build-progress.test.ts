import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { BuildProgress, BuildSteps } from "../../../../src/command/image/build-progress.js";

describe("the estimate of a build", () => {
  it("begins once two steps have ended, and is that the others take as long", () => {
    const steps = new BuildSteps(4, 1000);
    expect(steps.text(3000)).toBe("2.0 s");
    steps.take("[1/4] FROM debian", 1000);
    steps.take("[2/4] RUN one", 1000);
    expect(steps.text(3000)).toBe("step 2 of 4, 2.0 s: RUN one");
    steps.take("[3/4] RUN two", 41_000);
    expect(steps.text(51_000)).toBe("step 3 of 4, 50.0 s, about 30 s left: RUN two");
  });

  it("is never less than nothing", () => {
    const steps = new BuildSteps(null, 0);
    steps.take("Step 1/3 : FROM debian", 0);
    steps.take("Step 2/3 : RUN one", 1000);
    steps.take("Step 3/3 : RUN two", 1000);
    expect(steps.text(60_000)).toBe("step 3 of 3, 1 m 00 s: RUN two");
  });

  it("counts no line that is not the beginning of a step", () => {
    const steps = new BuildSteps(2, 0);
    for (const line of ["copy /context /", "[internal] load", "Step by step", "[1/x] RUN", "1/2"])
      steps.take(line, 5);
    expect(steps.text(0)).toBe("0.0 ms: 1/2");
    steps.take("[build 1/2] RUN one", 5);
    steps.take("output of the step", 5);
    expect(steps.text(0)).toBe("step 1 of 2, 0.0 ms: RUN one");
  });
});

describe("what is shown of builds and pulls", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  const MiB = 1024 ** 2;

  function shown() {
    let text = "";
    const target = {
      isTTY: true,
      columns: 200,
      write: (more: string) => {
        text += more;
      },
    };
    return { target, line: () => text.split("\r\x1b[2K").at(-1) };
  }

  it("is how much of an image was pulled and unpacked, and how long that still takes", () => {
    const { target, line } = shown();
    using progress = new BuildProgress(target, { usesColour: false });
    const pull = { image: "debian:12", task: null, stage: "pull" } as const;
    const has = (downloaded: number, unpacked: number, total: number | null) =>
      progress.tell({
        ...pull,
        pulled: { downloaded: downloaded * MiB, unpacked: unpacked * MiB, total: total && total * MiB },
      });
    progress.tell(pull);
    vi.advanceTimersByTime(2500);
    expect(line()).toBe("pulling debian:12");
    has(10, 0, null);
    vi.advanceTimersByTime(500);
    expect(line()).toBe("pulling debian:12: 10 MiB");
    for (let second = 4; second <= 10; second++) {
      vi.advanceTimersByTime(1000);
      has(10 * second, 0, 200);
    }
    vi.advanceTimersByTime(1000);
    expect(line()).toMatch(/^pulling debian:12: 100 MiB of 200 MiB, about \d0 s left$/);
    has(200, 50, 200);
    vi.advanceTimersByTime(500);
    expect(line()).toMatch(/^pulling debian:12: unpacked 50 MiB of 200 MiB/);
    progress.tell({ ...pull, stage: "ready" });
    vi.advanceTimersByTime(500);
    expect(line()).toBe("");
  });

  it("is one line for two images, with the steps of each", () => {
    const { target, line } = shown();
    using progress = new BuildProgress(target, { subject: (name) => name, usesColour: false });
    const build = (image: string, text: string) =>
      progress.tell({ image, task: null, stage: "build", line: text });
    build("base", "Step 1/3 : FROM debian");
    build("toolbox", "fetching packages from the npm registry");
    vi.advanceTimersByTime(3000);
    expect(line()).toBe(
      "building base: step 1 of 3, 3.0 s: FROM debian; building toolbox: 3.0 s: fetching packages from the npm registry",
    );
  });

  it("is that another process builds it, while this one waits", () => {
    const { target, line } = shown();
    using progress = new BuildProgress(target, { usesColour: false });
    progress.tell({ image: "x", task: null, stage: "wait" });
    vi.advanceTimersByTime(3000);
    expect(line()).toBe("another process is building the image");
  });
});
