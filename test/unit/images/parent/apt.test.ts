import { describe, expect, it } from "vitest";
import { runProgram } from "../../../../src/images/parent/apt.js";

describe("runLoudly", () => {
  it("hands on every line of both streams", async () => {
    const lines: string[] = [];
    await runProgram(["sh", "-c", "echo out; echo err >&2; echo $WORD"], {
      onProgress: (line) => lines.push(line),
      env: { WORD: "given" },
    });
    expect(lines.toSorted()).toEqual(["err", "given", "out"]);
  });

  it("shows the end of what a failed program said", async () => {
    const failure = runProgram(["sh", "-c", "seq 100; echo the reason; exit 3"], {});
    await expect(failure).rejects.toMatchObject({
      code: "image.build-failed",
      message: expect.stringMatching(/failed\n.*the reason$/s),
    });
    await expect(failure).rejects.not.toThrow(/\n {2}50\n/);
  });

  it("says so when there is no such program", async () => {
    await expect(runProgram(["brig-absent"], {})).rejects.toMatchObject({ code: "image.build-failed" });
  });

  it("ends the program when its signal is aborted", async () => {
    const reason = new Error("enough");
    const controller = new AbortController();
    const running = runProgram(["sleep", "60"], { signal: controller.signal });
    setTimeout(() => controller.abort(reason), 50);
    await expect(running).rejects.toBe(reason);
  });
});
