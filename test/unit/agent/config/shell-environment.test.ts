import { describe, expect, it } from "vitest";
import { configSchema } from "../../../../src/agent/config/config-schema.js";
import { loadConfig } from "../../../../src/agent/config/settings/load-config.js";
import { commandVariables } from "../../../../src/agent/config/shell-environment.js";

const nowhere = { brigHome: "/proc/nowhere/brig", codexHome: "/proc/nowhere/codex" };

function variables(policy: object) {
  return commandVariables(configSchema.parse({ shell_environment_policy: policy }));
}

describe("commandVariables", () => {
  it("are those that are set", () => {
    expect(variables({})).toEqual({});
    expect(variables({ set: { A: "1", B: "" } })).toEqual({ A: "1", B: "" });
  });

  it("are not changed by what takes away from variables that never get in", () => {
    expect(variables({ set: { MY_TOKEN: "1" }, exclude: ["*"], ignore_default_excludes: false })).toEqual({
      MY_TOKEN: "1",
    });
  });

  it.each([
    ["A*", ["A", "AB"]],
    ["a?", ["AB"]],
    ["*", ["A", "AB", "B.C", "(B)"]],
    ["B.C", ["B.C"]],
    ["B.?", ["B.C"]],
    ["(B)", ["(B)"]],
    ["[AB]", []],
  ])("are only those that include_only = [%j] matches", (pattern, names) => {
    const set = { A: "1", AB: "2", "B.C": "3", "(B)": "4" };
    expect(Object.keys(variables({ set, include_only: [pattern] }))).toEqual(names);
  });

  it("match a pattern of many stars in no time", () => {
    const set = { ["A".repeat(1000)]: "1" };
    expect(variables({ set, include_only: [`${"*a".repeat(12)}*b`] })).toEqual({});
  });
});

describe("shell_environment_policy.inherit", () => {
  it.each(["all", "core"])(
    "is warned about when it is %s, since a sandbox inherits nothing",
    async (inherit) => {
      const overrides = [{ shell_environment_policy: { inherit } }];
      const { warnings } = await loadConfig(nowhere, { overrides });
      expect(warnings).toEqual([
        `-c: shell_environment_policy.inherit = "${inherit}" has no effect: no variable of this machine enters a sandbox; ` +
          "name what commands need in shell_environment_policy.set",
      ]);
    },
  );

  it("is as it should be when it is none or not there", async () => {
    expect((await loadConfig(nowhere)).warnings).toEqual([]);
    const overrides = [{ shell_environment_policy: { inherit: "none" } }];
    expect((await loadConfig(nowhere, { overrides })).warnings).toEqual([]);
  });
});
