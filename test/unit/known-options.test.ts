import { describe, expect, it } from "vitest";
import {
  createModelClient,
  createToolRegistry,
  openConversation,
  openSessionFile,
  runAgent,
  Sandbox,
} from "../../src/index.js";

// A caller without a compiler; nothing is begun with what is wrong, so that nothing else is needed.
const wrong = (options: object) => options as never;

describe("an option that there is not is refused", () => {
  it.each<[string, () => unknown, string]>([
    ["Sandbox.create", () => Sandbox.create(wrong({ sandbox: "read-only" })), "did you mean mode?"],
    ["Sandbox.create", () => Sandbox.create(wrong({ polcyFile: "x" })), "did you mean policyFile?"],
    ["createToolRegistry", () => createToolRegistry(wrong({}), wrong({ cwdd: "/" })), "did you mean cwd?"],
    ["openConversation", () => openConversation(wrong({ onEvents: 1 })), "did you mean onEvent?"],
    ["runAgent", () => runAgent(wrong({ promt: "go" })), "did you mean prompt?"],
    ["openSessionFile", () => openSessionFile(wrong({ treadId: "x" })), "did you mean threadId?"],
    ["createModelClient", () => createModelClient(wrong({ modle: "x" })), "did you mean model?"],
  ])("%s", async (of, call, hint) => {
    const refused = (async () => await call())();
    await expect(refused).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(`^${of} has no option "\\w+"$`),
      hint,
    });
  });

  it("with all names there are, where none is near", async () => {
    await expect(Sandbox.create(wrong({ zzzzzzzz: 1 }))).rejects.toMatchObject({
      hint: expect.stringContaining("its options are workspace, workspaceKind, mode,"),
    });
  });

  it("as is anything but an object of options", async () => {
    await expect(Sandbox.create("read-only" as never)).rejects.toMatchObject({ code: "usage.invalid" });
  });
});
