import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { readHidden } from "../../../../src/cli/questions/hidden-prompt.js";
import { testContext } from "../../../support/cli-context.js";

const interruption = { exitStatus: 130, isQuiet: false, reason: new Error("ctrl-C") };

/** A terminal on which a person types as soon as the question is there; the kernel shows it while its echo is on. */
function hastyPerson(typed: string) {
  let isEchoOn = true;
  const stdin = Object.assign(new PassThrough(), {
    isTTY: true,
    setRawMode(isRaw: boolean) {
      isEchoOn = !isRaw;
    },
  });
  let shown = "";
  const stderr = Object.assign(new PassThrough(), { isTTY: true });
  stderr.setEncoding("utf8").on("data", (text: string) => {
    shown += text;
    if (!text.includes("Key: ")) return;
    if (isEchoOn) shown += typed;
    stdin.write(typed);
  });
  return {
    context: { ...testContext(), stdin, stderr, essentialStderr: stderr },
    shown: () => shown,
    isEchoOn: () => isEchoOn,
  };
}

describe("a secret", () => {
  it("is not shown, however soon it is typed", async () => {
    const { context, shown, isEchoOn } = hastyPerson("sk-1\r");
    expect(await readHidden("Key: ", context)).toBe("sk-1");
    expect(shown()).toBe("Key: \n");
    expect(isEchoOn()).toBe(true);
  });

  it.each(["\x03", "\x04"])("is not waited for after %j, however soon it is typed", async (key) => {
    const { context, isEchoOn } = hastyPerson(key);
    await expect(readHidden("Key: ", context)).rejects.toMatchObject({ code: "aborted" });
    expect(isEchoOn()).toBe(true);
  });

  it.each([true, false])(
    "is not asked for after an interruption that came before; at a terminal: %s",
    async (isTTY) => {
      const context = testContext({ interruption });
      const stdin = Object.assign(new PassThrough(), { isTTY });
      await expect(readHidden("Key: ", { ...context, stdin })).rejects.toThrow("ctrl-C");
      expect(context.written().stderr).toBe("");
    },
  );
});
