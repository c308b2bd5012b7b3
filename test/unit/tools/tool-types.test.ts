import { afterAll, describe, expect, expectTypeOf, it } from "vitest";
import {
  createToolRegistry,
  type ExecToolResult,
  type FileSearchResult,
  type Tool,
  type ToolName,
  type ToolOf,
  type ToolOutput,
} from "../../../src/public/tools.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const sandbox = new MemorySandbox();
const tools = createToolRegistry(sandbox, { cwd: "/tmp" });

afterAll(() => sandbox.close());

type ArgumentsOfTool<Name extends ToolName> = Parameters<ToolOf<Name>["execute"]>[0];

// What is wrong here is found by the compiler: an expected error that is none is one itself.
describe("a registry's tool", () => {
  it("takes its own arguments where its name is written out", async () => {
    expectTypeOf<ArgumentsOfTool<"shell">["command"]>().toEqualTypeOf<readonly string[]>();
    expectTypeOf<ArgumentsOfTool<"shell">["timeout_ms"]>().toEqualTypeOf<number | undefined>();
    expectTypeOf<ArgumentsOfTool<"shell_command">["command"]>().toEqualTypeOf<string>();
    expectTypeOf<ArgumentsOfTool<"write_stdin">["session_id"]>().toEqualTypeOf<number>();
    expectTypeOf<ArgumentsOfTool<"apply_patch">>().toEqualTypeOf<{ input: string }>();
    const argv = ["true"] as const;
    expect((await tools.get("shell").execute({ command: argv })).success).toBe(true);
    // @ts-expect-error a script is the argument of shell_command
    await expect(tools.get("shell").execute({ command: "true" })).rejects.toThrow();
    // @ts-expect-error the command is missing
    await expect(tools.get("exec").execute({})).rejects.toThrow();
    // @ts-expect-error it is called cwd here
    await tools.get("exec").execute({ command: ["true"], workdir: "/tmp" });
  });

  it("answers with what it alone tells", () => {
    expectTypeOf(tools.get("exec").execute).returns.resolves.toEqualTypeOf<ExecToolResult>();
    expectTypeOf(tools.get("fileSearch").execute).returns.resolves.toEqualTypeOf<FileSearchResult>();
    expectTypeOf(tools.get("applyPatch").execute).returns.resolves.toHaveProperty("stderr");
    expectTypeOf(tools.get("shell").execute).returns.resolves.toEqualTypeOf<ToolOutput>();
    // @ts-expect-error only a program is told the exit code
    expectTypeOf(tools.get("shell").execute).returns.resolves.toHaveProperty("exitCode");
  });

  it("is known by its other name too", () => {
    expectTypeOf(tools.get("container.exec")).toEqualTypeOf(tools.get("shell"));
    expectTypeOf<"container.exec">().toExtend<ToolName>();
  });

  it("does not compile under a name that no tool has", () => {
    // @ts-expect-error there is no such tool
    expect(() => tools.get("shel")).toThrow("unsupported call: shel");
    // @ts-expect-error one of the two is no tool
    expect(() => tools.get("nope" as "exec" | "nope")).toThrow("unsupported call: nope");
  });

  it("is any tool where its name comes from elsewhere, and takes what is checked when it comes", async () => {
    const name: string = ["shell"].join();
    const tool = tools.get(name);
    expectTypeOf(tool).toEqualTypeOf<Tool>();
    expectTypeOf(tool.execute).parameter(0).toBeUnknown();
    await expect(tool.execute({ command: 1 })).rejects.toMatchObject({ code: "tool.invalid-input" });
    expectTypeOf(tools.getAll()).toEqualTypeOf<Tool[]>();
  });

  it("has the name that it is found by", () => {
    const names = tools.getToolNames();
    expect(names.map((name) => tools.get(name).name)).toEqual(names);
    expect(names).toContain("fileSearch");
    expect(tools.getAll().map(({ name }) => name)).toEqual(names);
  });
});
