import { describe, expect, it } from "vitest";
import { profileOf } from "../../../src/agent/model/model-profile.js";
import { CallScheduler } from "../../../src/tools/call-scheduler.js";
import { createToolRegistry } from "../../../src/tools/registry.js";
import {
  defaultGates,
  explainGate,
  type GateLayer,
  mergeGates,
  nobodyToAsk,
  refusalOf,
  type ShellKind,
  type ToolGates,
} from "../../../src/tools/tool-gates.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

const someone = { ask: () => Promise.resolve(null) };

function registry(gates: ToolGates = {}) {
  return createToolRegistry(new MemorySandbox(), { cwd: "/tmp", gates, user: someone });
}

function offered(gates: ToolGates = {}): string[] {
  return registry(gates)
    .getSpecs()
    .map((spec) => ("name" in spec ? spec.name : spec.type));
}

const shellTools = ["shell", "shell_command", "local_shell", "exec_command", "write_stdin"];

describe("the tools a model is told of", () => {
  it.each<[ShellKind | undefined, string[]]>([
    [undefined, ["exec_command", "write_stdin"]],
    ["unified_exec", ["exec_command", "write_stdin"]],
    ["shell_command", ["shell_command"]],
    ["default", ["shell"]],
    ["local", ["local_shell"]],
    ["disabled", []],
  ])("under tools.shell = %s are, of those for commands, %j", (shell, names) => {
    expect(offered({ shell }).filter((name) => shellTools.includes(name))).toEqual(names);
  });

  it.each([
    ["request_user_input", { request_user_input: false }],
    ["read_file", { read_file: false }],
    ["list_dir", { list_dir: false }],
  ])("have %s by default, and not under %j", (name, gates) => {
    expect(offered()).toContain(name);
    expect(offered(gates)).not.toContain(name);
  });

  it("have request_user_input only where somebody can answer", () => {
    const alone = createToolRegistry(new MemorySandbox(), {
      cwd: "/tmp",
      gates: { request_user_input: true },
    });
    expect(alone.getSpecs().map((spec) => ("name" in spec ? spec.name : ""))).not.toContain(
      "request_user_input",
    );
  });

  it("have the hosted search only when it is asked for, as the provider takes it", () => {
    expect(offered()).not.toContain("web_search");
    expect(registry({ web_search: "cached" }).getSpecs()).toContainEqual({
      type: "web_search",
      external_web_access: false,
    });
    expect(registry({ web_search: "live" }).getSpecs()).toContainEqual({
      type: "web_search",
      external_web_access: true,
    });
    expect(offered({ web_search: "disabled" })).not.toContain("web_search");
  });

  it("have local_shell as a kind of its own", () => {
    expect(registry({ shell: "local" }).getSpecs()).toContainEqual({ type: "local_shell" });
  });

  it("never have the names for programs", () => {
    expect(offered()).not.toContain("readFile");
  });
});

describe("a call of a tool that is off", () => {
  async function call(name: string, gates: ToolGates, input = "{}") {
    const scheduler = new CallScheduler(registry(gates), { signal: new AbortController().signal });
    return (await scheduler.run({ callId: "c", name, kind: "function", input })).content;
  }

  it("is refused with the setting that decides", async () => {
    expect(await call("read_file", { read_file: false })).toBe(
      "read_file is disabled in this session (tools.read_file = false): use another tool",
    );
    expect(await call("shell", { shell: "disabled" }, '{"command":["true"]}')).toBe(
      "shell is disabled in this session (tools.shell = disabled): use another tool",
    );
    expect(await call("container.exec", { shell: "disabled" })).toContain("shell is disabled");
    expect(await call("readFile", {})).toBe("unsupported call: readFile");
  });

  it("is made all the same for a shell tool where nobody has chosen one", async () => {
    expect(await call("shell", {}, '{"command":["echo","hi"]}')).toContain("hi");
  });

  it("can be made by a program", async () => {
    const { success } = await registry({ shell: "disabled" })
      .get("shell")
      .execute({ command: ["true"] });
    expect(success).toBe(true);
  });

  it("cannot run the hosted search as a function", async () => {
    expect(await call("web_search", { web_search: "live" })).toContain("model's provider");
  });
});

describe("why a tool is on or off", () => {
  const layers = (...more: GateLayer[]) => [defaultGates, ...more];
  const file: GateLayer = { source: "configuration", gates: { shell: "shell_command", read_file: false } };

  it.each([
    ["exec_command", layers(), { isOn: true, why: "tools.shell = unified_exec (default)" }],
    ["shell", layers(), { isOn: false, why: "tools.shell = unified_exec (default); accepted when called" }],
    ["shell", layers(file), { isOn: false, why: "tools.shell = shell_command (configuration)" }],
    ["read_file", layers(), { isOn: true, why: "tools.read_file = true (default)" }],
    ["read_file", layers(file), { isOn: false, why: "tools.read_file = false (configuration)" }],
    [
      "read_file",
      layers(file, { source: "-c", gates: { read_file: true } }),
      { isOn: true, why: "tools.read_file = true (-c)" },
    ],
    ["js_repl_reset", layers(), { isOn: false, why: "tools.js_repl = false (default)" }],
    [
      "request_user_input",
      layers(nobodyToAsk),
      { isOn: false, why: "tools.request_user_input = false (nobody can answer here)" },
    ],
    ["readFile", layers(), { isOn: false, why: "for programs, not for models" }],
  ])("is told of %s", (name, of, explanation) => {
    expect(explainGate(name, of)).toEqual(explanation);
  });

  it("agrees with what is refused, whatever is set", () => {
    for (const shell of ["unified_exec", "shell_command", "default", "local", "disabled"] as const)
      for (const name of shellTools) {
        const of = layers({ source: "-c", gates: { shell } });
        expect(refusalOf(name, mergeGates(of)) === null).toBe(explainGate(name, of).isOn);
      }
  });
});

describe("a model's family", () => {
  it.each([
    ["gpt-5.2-codex", {}],
    ["codex-mini-latest", { shell: "local" }],
    ["openai/gpt-oss-120b", { apply_patch: "function", view_image: false }],
    ["llama-9", { apply_patch: "function" }],
  ])("decides for %s: %j", (model, gates) => {
    expect(profileOf(model).tools).toEqual(gates);
  });
});
