import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ConfigChoice, loadConfig } from "../../../src/config/load-config.js";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
  mkdirSync(join(home, "brig"));
  mkdirSync(join(home, "codex"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

function load(toml: string | null, choice: ConfigChoice = {}, folder = "brig") {
  if (toml !== null) writeFileSync(join(home, folder, "config.toml"), toml);
  return loadConfig({ brigHome: join(home, "brig"), codexHome: join(home, "codex") }, choice);
}

describe("loadConfig", () => {
  it("takes no file as an empty one", async () => {
    const { config, file, warnings } = await load(null);
    expect(config.model).toBeUndefined();
    expect(file).toBeNull();
    expect(warnings).toEqual([]);
  });

  it("reads the Codex file only where brig has none", async () => {
    await load('model = "of-codex"', {}, "codex");
    expect((await load(null)).config.model).toBe("of-codex");
    expect((await load('model = "of-brig"')).config.model).toBe("of-brig");
  });

  it("fills in a provider's defaults", async () => {
    const { config } = await load('[model_providers.local]\nbase_url = "http://127.0.0.1:8080/v1"');
    expect(config.model_providers.local).toMatchObject({
      wire_api: "responses",
      request_max_retries: 4,
      stream_max_retries: 5,
      stream_idle_timeout_ms: 300_000,
    });
  });

  it("puts a profile above the file, -c above the profile", async () => {
    const toml = `
model = "a"
model_verbosity = "low"
profile = "slow"
[sandbox_workspace_write]
writable_roots = ["/one"]
[profiles.slow]
model = "b"
[profiles.fast]
model = "c"
[profiles.fast.sandbox_workspace_write]
network_access = true
`;
    expect((await load(toml)).config).toMatchObject({ model: "b", model_verbosity: "low" });
    expect((await load(toml, { profile: "fast" })).config).toMatchObject({
      model: "c",
      sandbox_workspace_write: { writable_roots: ["/one"], network_access: true },
    });
    expect((await load(toml, { profile: "fast", overrides: ["model=d"] })).config.model).toBe("d");
    expect((await load(toml, { overrides: ['profile="fast"'] })).config.model).toBe("c");
  });

  it.each([
    ["model=gpt-x", { model: "gpt-x" }],
    ['model="gpt-x"', { model: "gpt-x" }],
    ["tool_output_token_limit=500", { tool_output_token_limit: 500 }],
    ["allow_login_shell=false", { allow_login_shell: false }],
    ["model = with spaces ", { model: "with spaces" }],
    [
      'sandbox_workspace_write.writable_roots=["/a", "/b"]',
      { sandbox_workspace_write: { writable_roots: ["/a", "/b"] } },
    ],
    [
      'model_providers."a.b".base_url=http://127.0.0.1/v1',
      { model_providers: { "a.b": { base_url: "http://127.0.0.1/v1" } } },
    ],
  ])("takes -c %s", async (override, expected) => {
    expect((await load(null, { overrides: [override] })).config).toMatchObject(expected);
  });

  it.each(["model", "=x", "[a]=b", ""])("refuses -c %j", async (override) => {
    await expect(load(null, { overrides: [override] })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("says line and column of a file that does not parse", async () => {
    await expect(load('model = "a"\nmodel_provider = \n')).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(/brig\/config\.toml:2:\d+: /),
    });
  });

  it("says which key has a wrong value", async () => {
    await expect(load("[model_providers.x]\nrequest_max_retries = 1000")).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining("model_providers.x.request_max_retries"),
    });
  });

  it("warns of unknown keys wherever they are, with what was probably meant, and goes on", async () => {
    const { config, warnings } = await load(`
modle = "a"
model = "b"
zzz = 1
[model_providers.local]
base_ulr = "x"
[profiles.p]
sandbox_mod = "read-only"
`);
    expect(config.model).toBe("b");
    expect(warnings.map((text) => text.replace(/^.*config\.toml: /, ""))).toEqual([
      "unknown key `modle`; did you mean `model`?",
      "unknown key `zzz`",
      "unknown key `model_providers.local.base_ulr`; did you mean `base_url`?",
      "unknown key `profiles.p.sandbox_mod`; did you mean `sandbox_mode`?",
    ]);
  });

  it("warns of an unknown key of -c as such", async () => {
    const { warnings } = await load('model = "a"', { overrides: ["modle=b"] });
    expect(warnings).toEqual(["-c: unknown key `modle`; did you mean `model`?"]);
  });

  it("says nothing about keys that Codex has and brig does not use", async () => {
    const { warnings } = await load(
      '[mcp_servers.a]\ncommand = "x"\n[projects."/a"]\ntrust_level = "trusted"',
    );
    expect(warnings).toEqual([]);
  });

  it("says when there is no such profile, and which was probably meant", async () => {
    await expect(load('[profiles.fast]\nmodel = "a"', { profile: "fats" })).rejects.toMatchObject({
      code: "config.invalid",
      hint: "did you mean fast?",
    });
  });

  it("is not fooled by keys that mean something to JavaScript", async () => {
    const { config } = await load('[__proto__]\nmodel = "evil"\n[profiles.constructor]\nmodel = "b"', {
      profile: "constructor",
    });
    expect(config.model).toBe("b");
    expect(Object.hasOwn(Object.prototype, "model")).toBe(false);
    await expect(load('model = "a"', { profile: "toString" })).rejects.toMatchObject({
      code: "config.invalid",
    });
  });
});
