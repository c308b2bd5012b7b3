import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { attachTerminal } from "../../../src/command/terminal-session.js";
import type { ExitStatus, SandboxProcess } from "../../../src/sandbox/sandbox-types.js";
import { testContext } from "../../support/cli-context.js";

/** A program that runs until it is killed. */
function endlessProgram() {
  const resize = vi.fn();
  const signals: (string | undefined)[] = [];
  const stdout = new PassThrough();
  const program = {
    stdin: new PassThrough(),
    stdout,
    exit: new Promise<ExitStatus>(() => undefined),
    resize,
    kill: async (signal?: string) => {
      signals.push(signal);
      stdout.end();
    },
  };
  return { program: program as unknown as SandboxProcess, signals, resize };
}

describe("a program on a terminal", () => {
  it("gets the size that the window has by then, and each later one", () => {
    const context = testContext({ isTerminal: true });
    const window = Object.assign(context.stdout, { rows: 30, columns: 100 });
    const { program, resize } = endlessProgram();
    Object.assign(window, { rows: 31, columns: 101 });
    void attachTerminal(program, context, { takesInput: false });
    expect(resize.mock.lastCall).toEqual([{ rows: 31, cols: 101 }]);
    Object.assign(window, { rows: 40, columns: 120 }).emit("resize");
    expect(resize.mock.lastCall).toEqual([{ rows: 40, cols: 120 }]);
  });
});

describe("a program on a terminal whose input cannot be read", () => {
  it("is hung up, and the failure told", async () => {
    const context = testContext();
    const { program, signals } = endlessProgram();
    const attached = attachTerminal(program, context, { takesInput: true });
    context.stdin.destroy(new Error("EIO"));
    await expect(attached).rejects.toMatchObject({
      code: "usage.invalid",
      message: "standard input cannot be read: EIO",
    });
    expect(signals).toEqual(["SIGHUP"]);
  });

  it("is left to the hang-up of the terminal, if that is what its input was", async () => {
    const context = testContext({ isTerminal: true });
    const { program, signals } = endlessProgram();
    const attached = attachTerminal(program, context, { takesInput: true });
    context.stdin.destroy(new Error("EIO"));
    await expect(
      Promise.race([attached, new Promise((resolve) => setTimeout(resolve, 50, "still attached"))]),
    ).resolves.toBe("still attached");
    expect(signals).toEqual([]);
  });
});
