import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { describeConfig } from "../../../../../src/agent/config/settings/describe-config.js";
import { type ConfigChoice, loadConfig } from "../../../../../src/agent/config/settings/load-config.js";
import { configKeys } from "../../../../support/config-keys.js";

let home = "";

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
});

afterAll(() => {
  rmSync(home, { recursive: true });
});

async function described(toml: string, choice: ConfigChoice = {}) {
  writeFileSync(join(home, "config.toml"), toml);
  const loaded = await loadConfig({ brigHome: home, codexHome: "/proc/nowhere" }, choice);
  return describeConfig(loaded);
}

const line = (number: number) => ({ kind: "file", file: join(home, "config.toml"), line: number });

describe("describeConfig", () => {
  it("has every key, also where nobody sets any", async () => {
    const values = await described("");
    const keys = configKeys()
      .map(({ key }) => key)
      .filter((key) => !key.includes("<name>"))
      // Tables of texts have a value for each text.
      .filter((key) => !["shell_environment_policy.set", "images.alias", "templates"].includes(key));
    expect(values.map(({ key }) => key)).toEqual(keys);
    expect(new Set(values.map(({ source }) => source.kind))).toEqual(new Set(["default"]));
  });

  it("tells a default that is a value from one that others decide", async () => {
    const values = await described("");
    const find = (key: string) => values.find((value) => value.key === key);
    expect(find("lease_seconds")).toMatchObject({ value: 60, remark: null });
    expect(find("model_context_window")).toMatchObject({ value: undefined, remark: "by model" });
    expect(find("service_tier")).toMatchObject({ value: undefined, remark: null });
  });

  it("says where each value comes from, tables that are one value included", async () => {
    const values = await described('model = "m"\n[approval_policy.granular]\nrules = true\n');
    expect(values).toContainEqual({ key: "model", value: "m", remark: null, source: line(1) });
    expect(values.find(({ key }) => key === "approval_policy")).toMatchObject({
      value: { granular: { rules: true, sandbox_approval: false } },
      source: line(3),
    });
  });

  it("names what brig does not use, and not what is in it", async () => {
    const toml = '[analytics.env]\nTOKEN = "s3cret"\n[model_providers.x]\nauth = { command = "s3cret" }';
    const values = await described(toml);
    const unused = values.filter(({ remark }) => remark === "not used by brig");
    expect(unused.map(({ key, source }) => [key, source])).toEqual([
      ["analytics", line(2)],
      ["model_providers.x.auth", line(4)],
    ]);
    expect(JSON.stringify(values)).not.toContain("s3cret");
  });

  it("does not give a mode where a policy file stands for it", async () => {
    const values = await described('policy = "/p.toml"');
    expect(values.find(({ key }) => key === "sandbox_mode")).toMatchObject({
      value: undefined,
      remark: "as `policy` says",
    });
  });

  it("shows the chosen profile's values at the top and the other profiles not at all", async () => {
    const toml =
      'profile = "a"\n[profiles.a]\nmodel = "ma"\n[profiles.b]\nmodel = "of profile b"\nagents = {}';
    const values = await described(toml);
    expect(values.find(({ key }) => key === "model")).toMatchObject({
      value: "ma",
      source: { kind: "profile", profile: "a", line: 3 },
    });
    expect(JSON.stringify(values)).not.toContain("of profile b");
  });

  it("shows no secret, whatever it is and wherever it may stand", async () => {
    const secret = fc.stringMatching(/^sk-[a-z0-9]{20}$/);
    const name = fc.stringMatching(/^[a-z]{1,8}$/);
    await fc.assert(
      fc.asyncProperty(secret, name, async (key, id) => {
        const provider = `model_providers.${id}`;
        const toml = [
          `${provider}.experimental_bearer_token = "${key}"`,
          `${provider}.http_headers = { Authorization = "Bearer ${key}" }`,
          `${provider}.query_params = { key = "${key}" }`,
          `${provider}.base_url = "https://me:${key}@example.org/v1?key=${key}"`,
          `openai_base_url = "https://${key}@example.org/v1"`,
          `chatgpt_base_url = "https://example.org/v1?key=${key}"`,
          `shell_environment_policy.set.${id} = "${key}"`,
          `notify = ["${key}"]`,
          `tui.${id} = "${key}"`,
          `profiles.${id}.model = "${key}"`,
        ].join("\n");
        expect(JSON.stringify(await described(toml))).not.toContain(key);
      }),
      { numRuns: 50 },
    );
  });
});
