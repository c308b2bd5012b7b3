import { describe, expect, it } from "vitest";
import { isBrigError } from "../../../src/errors.js";
import type { JsonSchema } from "../../../src/tools/json-schema.js";
import { createToolRegistry, type ToolRegistry } from "../../../src/tools/registry.js";
import type { FunctionToolSpec, Tool } from "../../../src/tools/tool.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const tools = createToolRegistry(new MemorySandbox(), { cwd: "/tmp" });

function functionSpec({ spec }: Tool): FunctionToolSpec | null {
  return spec.type === "function" ? spec : null;
}

async function failureOf(promise: Promise<unknown>) {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return isBrigError(error) ? { code: error.code, message: error.message } : error;
}

describe("createToolRegistry", () => {
  it("lists its tools and finds each", () => {
    expect(tools.getToolNames()).toEqual(
      expect.arrayContaining(["shell", "shell_command", "local_shell", "exec_command", "write_stdin"]),
    );
    expect(tools.getAll().map(({ name }) => name)).toEqual(tools.getToolNames());
    expect(tools.has("shell")).toBe(true);
    expect(tools.has("toString")).toBe(false);
  });

  it("offers its tools in the form of another model", async () => {
    const registry = createToolRegistry(new MemorySandbox(), { cwd: "/tmp" });
    const specOf = (name: string) => registry.getSpecs().find((spec) => "name" in spec && spec.name === name);
    expect(specOf("apply_patch")).toMatchObject({ type: "custom" });
    registry.adapt({ gates: { apply_patch: "function", shell: "shell_command", view_image: false } });
    expect(specOf("apply_patch")).toMatchObject({ type: "function" });
    expect(specOf("exec_command")).toBeUndefined();
    expect(registry.refusalOf("view_image")).not.toBeNull();
    registry.adapt({ gates: {} });
    expect(specOf("exec_command")).toBeDefined();
    expect(registry.refusalOf("view_image")).toBeNull();
    await registry.close();
  });

  it("knows shell under its older name too", () => {
    expect(tools.get("container.exec").name).toBe("shell");
  });

  it("gives strict schemas to those who take no other: all is required, what was not may be null", async () => {
    for (const spec of tools.getSpecs({ strict: true })) {
      if (spec.type !== "function") continue;
      expect(spec.strict).toBe(true);
      const check = (schema: JsonSchema): void => {
        const properties = Object.entries(schema.properties ?? {});
        if (schema.properties !== undefined) {
          expect(schema.additionalProperties).toBe(false);
          expect([...(schema.required ?? [])].sort()).toEqual(properties.map(([name]) => name).sort());
        }
        for (const [, property] of properties) check(property);
        if (schema.items !== undefined) check(schema.items);
      };
      check(spec.parameters);
    }
    const read = tools
      .getSpecs({ strict: true })
      .find((spec) => "name" in spec && spec.name === "exec_command");
    expect(read).toMatchObject({
      parameters: {
        properties: {
          cmd: { type: "string" },
          tty: { type: ["boolean", "null"] },
          sandbox_permissions: { type: ["string", "null"], enum: ["use_default", "require_escalated", null] },
        },
      },
    });
    // Which the tools take for left out.
    const args = {
      command: ["true"],
      workdir: null,
      timeout_ms: null,
      sandbox_permissions: null,
      justification: null,
      prefix_rule: null,
    };
    expect(await tools.get("shell" as string).execute(args)).toMatchObject({ success: true });
    expect(tools.getSpecs().every((spec) => spec.type !== "function" || !spec.strict)).toBe(true);
  });

  it("offers a login shell only where one is allowed", () => {
    const without = createToolRegistry(new MemorySandbox(), {
      cwd: "/",
      allowsLoginShell: false,
      gates: { shell: "shell_command" },
    });
    for (const name of ["exec_command", "shell_command"]) {
      const offered = (registry: ToolRegistry) => {
        const { spec } = registry.get(name);
        return spec.type === "function" ? Object.keys(spec.parameters.properties ?? {}) : [];
      };
      expect(offered(tools)).toContain("login");
      expect(offered(without)).not.toContain("login");
      expect(offered(without)).toContain("workdir");
    }
  });

  it("refuses a reason for leaving the sandbox without a request to leave it", async () => {
    const refusal =
      '`justification` requires an explicit `sandbox_permissions`; use `sandbox_permissions: "require_escalated"` for unsandboxed execution, or omit `justification`.';
    const because = { justification: "to be sure" };
    for (const [name, args] of Object.entries({
      shell: { command: ["true"] },
      shell_command: { command: "true" },
      exec_command: { cmd: "true", login: false },
    })) {
      expect(await tools.get(name).execute({ ...args, ...because })).toEqual({
        content: refusal,
        success: false,
      });
      const explicit = { ...args, ...because, sandbox_permissions: "use_default" };
      expect((await tools.get(name).execute(explicit)).success).toBe(true);
    }
  });

  it("says which tools there are when asked for another", () => {
    expect(() => tools.get("nope" as string)).toThrow(
      expect.objectContaining({
        code: "tool.unknown",
        message: "unsupported call: nope",
        hint: expect.stringContaining("exec_command"),
      }),
    );
  });

  it.each([
    [{}, "missing field `command`"],
    [{ command: null }, "missing field `command`"],
    [{ command: "ls" }, "`command`: Invalid input: expected array, received string"],
    [{ command: ["ls", 1] }, "`command.1`: Invalid input: expected string, received number"],
    [{ command: ["ls"], timeout_ms: -1 }, "`timeout_ms`: Too small: expected number to be >=0"],
    ["ls", "Invalid input: expected object, received string"],
  ])("refuses the arguments %j with tool.invalid-input", async (args, reason) => {
    expect(await failureOf(tools.get("shell" as string).execute(args))).toEqual({
      code: "tool.invalid-input",
      message: `failed to parse function arguments: ${reason}`,
    });
  });

  it("ignores argument keys it does not know", async () => {
    const { success } = await tools.get("shell" as string).execute({ command: ["true"], mood: "good" });
    expect(success).toBe(true);
  });

  it("waits for a sandbox that is still starting only when a call needs it", async () => {
    let open: (sandbox: MemorySandbox) => void = () => undefined;
    const starting = new Promise<MemorySandbox>((resolve) => {
      open = resolve;
    });
    const early = createToolRegistry(starting, { cwd: "/tmp" });
    expect(early.getSpecs().length).toBeGreaterThan(2);
    const call = early.get("shell").execute({ command: ["echo", "ready"] });
    open(new MemorySandbox());
    expect((await call).content).toContain("ready");
  });

  it("describes each tool by a JSON Schema of the plain kind, every parameter explained", () => {
    for (const spec of tools.getAll().map(functionSpec)) {
      if (spec === null) continue;
      expect(spec).toMatchObject({ type: "function", strict: false });
      expect(spec.parameters).toMatchObject({ type: "object", additionalProperties: false });
      expect(JSON.stringify(spec)).not.toMatch(/\$schema|"integer"|anyOf|"default"|"maximum"/);
      for (const parameter of Object.values(spec.parameters.properties ?? {}))
        expect(parameter.description).toEqual(expect.any(String));
    }
  });

  it.each([
    ["shell", ["command", "workdir", "timeout_ms"], ["command"]],
    ["shell_command", ["command", "workdir", "timeout_ms", "login"], ["command"]],
    [
      "exec_command",
      ["cmd", "workdir", "shell", "login", "tty", "yield_time_ms", "max_output_tokens"],
      ["cmd"],
    ],
    ["write_stdin", ["session_id", "chars", "yield_time_ms", "max_output_tokens"], ["session_id"]],
  ])("gives %s the parameters %j", (name, names, required) => {
    const parameters = functionSpec(tools.get(name))?.parameters ?? {};
    const escalation = ["sandbox_permissions", "justification", "prefix_rule"];
    expect(Object.keys(parameters.properties ?? {}).filter((key) => !escalation.includes(key))).toEqual(
      names,
    );
    expect(parameters.required).toEqual(required);
  });
});
