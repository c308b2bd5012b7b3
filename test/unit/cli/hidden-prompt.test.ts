import { expect, it } from "vitest";
import { readHidden } from "../../../src/cli/hidden-prompt.js";
import { testContext } from "../../support/cli-context.js";

it.each([false, true])(
  "a secret is not waited for after an interruption that came before, at a terminal: %j",
  async (isTTY) => {
    const reason = new Error("interrupted");
    const context = testContext({ interruption: { exitStatus: 130, isQuiet: false, reason } });
    Object.assign(context.stdin, { isTTY });
    await expect(readHidden("API key: ", context)).rejects.toBe(reason);
  },
);
