import { userInfo } from "node:os";
import { join, resolve } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";

describe("readEnvironment", () => {
  it.skipIf(process.getuid?.() !== 0)(
    "takes the root directory as the home of a user without one [needs root]",
    () => {
      vi.stubEnv("HOME", undefined);
      process.seteuid?.(54_321);
      try {
        expect(readEnvironment({})).toMatchObject({ home: "/", brigHome: "/.brig" });
      } finally {
        process.seteuid?.(0);
      }
    },
  );

  it("puts brig's home under the user's home unless BRIG_HOME says otherwise", () => {
    expect(readEnvironment({ HOME: "/h" }).brigHome).toBe("/h/.brig");
    expect(readEnvironment({ HOME: "/h", BRIG_HOME: "/b" }).brigHome).toBe("/b");
  });

  it("counts an empty variable as unset", () => {
    const environment = readEnvironment({ HOME: "/h", BRIG_HOME: "", OPENAI_API_KEY: "", NO_COLOR: "" });
    expect(environment.brigHome).toBe("/h/.brig");
    expect(environment.openaiApiKey).toBeUndefined();
    expect(environment.forbidsColor).toBe(false);
  });

  it("takes the home of the user from the machine where HOME is empty, which is no name of the current directory", () => {
    vi.stubEnv("HOME", "");
    const { home, brigHome, codexHome } = readEnvironment();
    expect(home).toBe(userInfo().homedir);
    expect([brigHome, codexHome]).toEqual([join(home, ".brig"), join(home, ".codex")]);
  });

  it.each([
    ["HOME", "."],
    ["HOME", "home/user"],
    ["BRIG_HOME", "./.brig"],
    ["CODEX_HOME", ".."],
  ])("refuses %s=%j, whose settings would be those of the current directory", (name, path) => {
    const read = () => readEnvironment({ HOME: "/h", [name]: path }, { cwd: () => "/work" });
    expect(read).toThrow(
      expect.objectContaining({
        code: "config.invalid",
        message: expect.stringContaining(`${name} is "${path}"`),
        hint: expect.stringContaining(resolve("/work", path)),
      }),
    );
  });

  it("counts a relative path in a variable of XDG as unset, for itself and for the programs that it starts", () => {
    const { runtimeDir, variables } = readEnvironment({
      ...{ HOME: "/h", XDG_RUNTIME_DIR: "run", XDG_CONFIG_HOME: ".", XDG_DATA_HOME: "/data" },
      ...{ XDG_CONFIG_DIRS: "etc:/etc/xdg::./x", XDG_DATA_DIRS: "share", XDG_SESSION_TYPE: "wayland" },
    });
    expect(runtimeDir).toBeUndefined();
    expect(variables).toEqual({
      ...{ HOME: "/h", XDG_DATA_HOME: "/data", XDG_CONFIG_DIRS: "/etc/xdg", XDG_SESSION_TYPE: "wayland" },
    });
  });

  it.each([
    ["1", true],
    ["true", true],
    ["0", false],
    ["false", false],
    ["", false],
  ])("reads CI=%j as %j", (value, expected) => {
    expect(readEnvironment({ CI: value }).isContinuousIntegration).toBe(expected);
  });

  it("cannot be changed by its readers", () => {
    const environment = readEnvironment({ HOME: "/h" });
    expect(Object.isFrozen(environment)).toBe(true);
    expect(Object.isFrozen(environment.variables)).toBe(true);
  });
});
