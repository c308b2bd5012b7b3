import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { attachTerminal } from "../../../src/cli/terminal-session.js";
import type { ExitStatus, SandboxProcess } from "../../../src/sandbox/sandbox-types.js";
import { testContext } from "../../support/cli-context.js";

/** A program that runs until it is killed. */
function endlessProgram() {
  const signals: (string | undefined)[] = [];
  const stdout = new PassThrough();
  const program = {
    stdin: new PassThrough(),
    stdout,
    exit: new Promise<ExitStatus>(() => undefined),
    resize: () => undefined,
    kill: async (signal?: string) => {
      signals.push(signal);
      stdout.end();
    },
  };
  return { program: program as unknown as SandboxProcess, signals };
}

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
