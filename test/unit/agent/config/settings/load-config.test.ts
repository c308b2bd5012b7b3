import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  type ConfigChoice,
  loadConfig,
  parseOverride,
} from "../../../../../src/agent/config/settings/load-config.js";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
  mkdirSync(join(home, "brig"));
  mkdirSync(join(home, "codex"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

type Choice = Omit<ConfigChoice, "overrides"> & { overrides?: readonly string[] };

async function load(toml: string | null, { overrides, ...choice }: Choice = {}, folder = "brig") {
  if (toml !== null) writeFileSync(join(home, folder, "config.toml"), toml);
  return await loadConfig(
    { brigHome: join(home, "brig"), codexHome: join(home, "codex"), home: "/h" },
    { ...choice, overrides: overrides?.map(parseOverride) },
  );
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

  it.each(["model", "=x", "[a]=b", "", '"\\q"=1', "a\nb=1", "a..b=1"])("refuses -c %j", async (override) => {
    await expect(load(null, { overrides: [override] })).rejects.toMatchObject({ code: "usage.invalid" });
  });

  it("takes the lines of a -c value for a text, never for further keys", async () => {
    const { config } = await load(null, {
      overrides: ['instructions=1\nsandbox_mode = "danger-full-access"'],
    });
    expect(config.sandbox_mode).toBeUndefined();
    expect(config.instructions).toBe('1\nsandbox_mode = "danger-full-access"');
  });

  it("does not show a value of -c that may be secret", async () => {
    const secret = "sk-12345";
    const overrides = [`a b=${secret}`];
    const failure = await load(null, { overrides }).catch((error: unknown) => error);
    expect(String(failure)).toContain("-c a b=… is not key=value");
    const wrong = [`shell_environment_policy.set.A=["${secret}"]`];
    const refusal = await load(null, { overrides: wrong }).catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "config.invalid" });
    expect(String(refusal)).not.toContain(secret);
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
    expect(warnings.map((text) => text.replace(/^.*config\.toml:/, ""))).toEqual([
      "2: unknown key `modle`; did you mean `model`?",
      "4: unknown key `zzz`",
      "6: unknown key `model_providers.local.base_ulr`; did you mean `base_url`?",
      "8: unknown key `profiles.p.sandbox_mod`; did you mean `sandbox_mode`?",
    ]);
  });

  it("warns of an unknown key of -c as such", async () => {
    const { warnings } = await load('model = "a"', { overrides: ["modle=b"] });
    expect(warnings).toEqual(["-c: unknown key `modle`; did you mean `model`?"]);
  });

  it("says nothing about what Codex notes down by itself", async () => {
    const { warnings } = await load('[projects."/a"]\ntrust_level = "trusted"\n[notice]\nb = 1');
    expect(warnings).toEqual([]);
  });

  it("names the Codex keys that brig ignores, in one line, which is no warning", async () => {
    const { warnings, notes } = await load(
      'notify = ["x"]\n[features]\na = true\n[profiles.p.features]\na = 1\n' +
        '[model_providers.b]\nname = "b"\naws = 1\n[notice]\nb = 1',
    );
    expect(warnings).toEqual([]);
    expect(notes).toEqual([
      "these keys of Codex have no effect here: `notify`, `features.a`, `profiles.p.features.a`, `model_providers.b.aws`",
    ]);
  });

  it("reads a profile from a file beside config.toml, as Codex does", async () => {
    const file = join(home, "brig", "work.config.toml");
    writeFileSync(file, 'model = "of-file"\npolicy = "p.toml"\nmodl = 1\n[tui]\na = 1\n');
    const toml = 'model = "of-config"\nservice_tier = "flex"\nsandbox_mode = "read-only"';
    const { config, sources, warnings, notes } = await load(toml, { profile: "work" });
    expect(config).toMatchObject({
      model: "of-file",
      service_tier: "flex",
      policy: join(home, "brig/p.toml"),
    });
    expect(config.sandbox_mode).toBeUndefined();
    expect(sources.get("model")).toEqual({ kind: "profile", profile: "work", file, line: 1 });
    expect(warnings).toEqual([`${file}:3: unknown key \`modl\`; did you mean \`model\`?`]);
    expect(notes).toEqual(["these keys of Codex have no effect here: `tui`"]);
    expect((await load('profile = "work"')).config.model).toBe("of-file");
    expect((await load('profile = "work"', { overrides: ["model=d"] })).config.model).toBe("d");
  });

  it("reads the profile's file of the config.toml that counts, also where there is only a profile", async () => {
    writeFileSync(join(home, "codex", "work.config.toml"), 'model = "of-codex"');
    expect((await load(null, { profile: "work" })).config.model).toBe("of-codex");
    await expect(load("", { profile: "work" })).rejects.toMatchObject({
      code: "config.invalid",
      hint: expect.stringContaining(join(home, "brig", "work.config.toml")),
    });
  });

  it.each([
    [
      "twice",
      "work",
      "[profiles.work]",
      "",
      /there are two profiles `work`: \[profiles\.work\] and .*work\.config\.toml/,
    ],
    ["with a profile of its own", "work", "", 'profile = "x"', /`profile` is not allowed in a profile/],
    ["with a wrong value", "work", "", "model = 5", /work\.config\.toml:1[\s\S]*model/],
    ["that is not TOML", "work", "", "model", /work\.config\.toml:1/],
    ["somewhere else", "../brig/work", "", 'model = "a"', /has no profile/],
  ])("refuses a profile %s", async (_, profile, toml, text, message) => {
    writeFileSync(join(home, "brig", "work.config.toml"), text);
    await expect(load(toml, { profile })).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringMatching(message),
    });
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

  it("suggests the place of a key that stands in the wrong table", async () => {
    const { warnings } = await load('[tools]\nnetwork_access = true\n[profiles.p.tools]\nmodel = "a"');
    expect(warnings).toEqual([
      `${home}/brig/config.toml:2: unknown key \`tools.network_access\`; did you mean \`sandbox_workspace_write.network_access\`?`,
      `${home}/brig/config.toml:4: unknown key \`profiles.p.tools.model\`; did you mean \`model\`?`,
    ]);
  });

  it("leaves unknown keys out of the configuration", async () => {
    const { config } = await load('modle = "a"\n[tools]\nshel = "local"');
    expect(Object.hasOwn(config, "modle")).toBe(false);
    expect(config.tools).toEqual({});
  });

  it("finds a wrong value even where a higher layer replaces it", async () => {
    await expect(load("model_verbosity = 3", { overrides: ["model_verbosity=low"] })).rejects.toMatchObject({
      message: expect.stringContaining("config.toml:1: model_verbosity is 3"),
    });
  });

  it("cannot be changed by its readers", async () => {
    const { config } = await load('[sandbox_workspace_write]\nwritable_roots = ["/a"]');
    const frozen = (value: unknown): boolean =>
      typeof value !== "object" ||
      value === null ||
      (Object.isFrozen(value) && Object.values(value).every(frozen));
    expect(frozen(config)).toBe(true);
  });

  it("resolves paths against the directory of the file that has them, and -c against the current one", async () => {
    const toml = `
model_instructions_file = "more.md"
[sandbox_workspace_write]
writable_roots = ["data", "~/x", "/abs"]
[profiles.p]
policy = "strict.toml"
`;
    const { config } = await load(toml, { profile: "p", cwd: "/work" });
    expect(config).toMatchObject({
      model_instructions_file: join(home, "brig/more.md"),
      sandbox_workspace_write: { writable_roots: [join(home, "brig/data"), "/h/x", "/abs"] },
      policy: join(home, "brig/strict.toml"),
    });
    const overrides = ["policy=p.toml", "model_instructions_file=~/i.md"];
    expect((await load("", { overrides, cwd: "/work" })).config).toMatchObject({
      policy: "/work/p.toml",
      model_instructions_file: "/h/i.md",
    });
  });

  it("lets a mode and a policy file replace each other, and refuses both in one place", async () => {
    const toml = 'sandbox_mode = "read-only"\n[profiles.p]\npolicy = "/p.toml"';
    const chosen = (await load(toml, { profile: "p" })).config;
    expect([chosen.sandbox_mode, chosen.policy]).toEqual([undefined, "/p.toml"]);
    const flags = { sandbox_mode: { flag: "--sandbox", value: "workspace-write" } };
    const flagged = await load(toml, { profile: "p", flags });
    expect([flagged.config.sandbox_mode, flagged.config.policy]).toEqual(["workspace-write", undefined]);
    await expect(load('sandbox_mode = "read-only"\npolicy = "/p.toml"')).rejects.toMatchObject({
      code: "config.invalid",
    });
  });

  it("names the flag that has a wrong value", async () => {
    await expect(
      load(null, { flags: { network: { flag: "--network", value: "some" } } }),
    ).rejects.toMatchObject({ message: expect.stringMatching(/^--network: network is "some": /) });
  });

  it("leaves out flags that were not given", async () => {
    const { config } = await load('model = "a"', { flags: { model: { flag: "-m", value: undefined } } });
    expect(config.model).toBe("a");
  });

  it.each([
    ["a FIFO", (file: string) => execFileSync("mkfifo", [file]), "is not a regular file"],
    ["a directory", (file: string) => mkdirSync(file), "is a directory"],
    [
      "a link to nothing",
      (file: string) => symlinkSync("gone.toml", file),
      "is a link to a file that is not there",
    ],
    ["not UTF-8", (file: string) => writeFileSync(file, Buffer.from([0x61, 0xff])), "is not UTF-8 text"],
    [
      "too large",
      (file: string) => writeFileSync(file, Buffer.alloc(1_048_577, 0x23)),
      "is longer than 1.0 MiB",
    ],
  ])("refuses a configuration file that is %s, within a second", async (_name, make, reason) => {
    make(join(home, "brig/config.toml"));
    await expect(load(null)).rejects.toMatchObject({
      code: "config.invalid",
      message: expect.stringContaining(reason),
    });
  });

  it("follows a link to the person's own file, which is theirs to make", async () => {
    writeFileSync(join(home, "dotfile.toml"), 'model = "linked"');
    symlinkSync(join(home, "dotfile.toml"), join(home, "brig/config.toml"));
    expect((await load(null)).config.model).toBe("linked");
  });
});
