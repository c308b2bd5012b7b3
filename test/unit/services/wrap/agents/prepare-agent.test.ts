import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { readEnvironment } from "../../../../../src/lib/env.js";
import { type PreparedAgent, prepareAgent } from "../../../../../src/services/wrap/agents/prepare-agent.js";

const key = "the-key-of-the-person";

/** Prepares the agent with these files in a home directory. */
async function prepare(
  agent: string,
  files: Record<string, string>,
  variables: Record<string, string> = {},
): Promise<PreparedAgent> {
  const home = await mkdtemp(join(tmpdir(), "brig-test-"));
  onTestFinished(() => rm(home, { recursive: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
  const given = Object.entries(variables).map(([name, value]) => [name, value.replace("$HOME", home)]);
  const request = { argv: [agent], agent: undefined, secrets: [], access: "copy", shown: {} } as const;
  return await prepareAgent(request, readEnvironment({ HOME: home, ...Object.fromEntries(given) }));
}

const held = ({ keys }: PreparedAgent) =>
  keys.map(({ variable, hosts, isPlainHttp }) => [variable, hosts, isPlainHttp ?? false]);
const paths = ({ configuration }: PreparedAgent) => configuration.files.map(({ path }) => path);
const textOf = ({ configuration }: PreparedAgent) => configuration.files[0]?.text ?? "";

describe("opencode's configuration", () => {
  const file = ".config/opencode/opencode.jsonc";

  it("names the hosts of its models, and the variables of their keys", async () => {
    const text = `{
      // ours
      "provider": {
        "anthropic": { "options": { "baseURL": "https://models.example/v1" } },
        "own": { "npm": "x", "options": { "baseURL": "http://10.0.0.1:8080/v1", "apiKey": "{env:OWN_KEY}" } },
        "constructor": { "options": { "baseURL": "https://other.example" } },
        "openai": { "options": { "apiKey": "{env:OPENAI_API_KEY}" } },
      },
    }`;
    const variables = { ANTHROPIC_API_KEY: key, OWN_KEY: key, OPENAI_API_KEY: key };
    const prepared = await prepare("opencode", { [file]: text }, variables);
    expect(held(prepared)).toEqual([
      ["ANTHROPIC_API_KEY", ["models.example"], false],
      ["OWN_KEY", ["10.0.0.1:8080"], true],
      ["OPENAI_API_KEY", ["api.openai.com"], false],
    ]);
    expect(prepared.hosts).toContain("other.example");
    expect(textOf(prepared)).toBe(text);
  });

  it("has a model of this machine at the name that the sandbox has for it", async () => {
    const options = { baseURL: "http://localhost:11434/v1", timeout: 5 };
    const text = JSON.stringify({ theme: "dark", provider: { ollama: { name: "Ollama", options } } });
    const prepared = await prepare("opencode", { [file]: text });
    expect(prepared.hosts).toContain("host.internal:11434");
    expect(JSON.parse(textOf(prepared))).toEqual({
      theme: "dark",
      provider: {
        ollama: { name: "Ollama", options: { ...options, baseURL: "http://host.internal:11434/v1" } },
      },
    });
    expect(prepared.configuration.files[0]?.isUnchanged).toBe(false);
  });

  it("has one key for several hosts, without TLS only where all are without", async () => {
    const options = (baseURL: string) => ({ options: { baseURL, apiKey: "{env:OWN_KEY}" } });
    const provider = { one: options("http://one.example/v1"), two: options("https://two.example/v1") };
    const prepared = await prepare("opencode", { [file]: JSON.stringify({ provider }) }, { OWN_KEY: key });
    expect(held(prepared)).toEqual([["OWN_KEY", ["one.example:80", "two.example"], false]]);
  });

  it.each(["", "{", "[]", '{"provider":[]}', '{"provider":{"a":null,"b":{"options":{"baseURL":7}}}}'])(
    "is passed on as it is if it says %j",
    async (text) => {
      const prepared = await prepare("opencode", { [file]: text }, { OPENAI_API_KEY: key });
      expect(held(prepared)).toEqual([["OPENAI_API_KEY", ["api.openai.com"], false]]);
      expect(textOf(prepared)).toBe(text);
    },
  );

  it("is where XDG_CONFIG_HOME says, if that is an absolute path", async () => {
    const files = { "elsewhere/opencode/opencode.json": "{}", [file]: "{}" };
    expect(paths(await prepare("opencode", files, { XDG_CONFIG_HOME: "$HOME/elsewhere" }))).toEqual([
      ".config/opencode/opencode.json",
    ]);
    expect(paths(await prepare("opencode", files, { XDG_CONFIG_HOME: "elsewhere" }))).toEqual([file]);
  });
});

describe("Claude Code's settings", () => {
  it("come before its environment, and lose the key itself", async () => {
    const env = {
      ANTHROPIC_BASE_URL: "http://127.0.0.1:4000",
      ANTHROPIC_AUTH_TOKEN: "token-of-the-settings",
      A: "b",
    };
    const prepared = await prepare(
      "claude",
      { ".claude/settings.json": JSON.stringify({ model: "opus", env }) },
      { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: "https://other.example" },
    );
    expect(held(prepared)).toEqual([["ANTHROPIC_API_KEY", ["host.internal:4000"], true]]);
    expect(JSON.parse(textOf(prepared))).toEqual({
      model: "opus",
      env: { ANTHROPIC_BASE_URL: "http://host.internal:4000/", A: "b" },
    });
    expect(prepared.configuration.leftOut.join()).toContain("env.ANTHROPIC_AUTH_TOKEN");
  });

  it("a token for a gateway stays outside, too", async () => {
    const variables = { ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_BASE_URL: "https://gateway.example" };
    expect(held(await prepare("claude", {}, variables))).toEqual([
      ["ANTHROPIC_AUTH_TOKEN", ["gateway.example"], false],
    ]);
  });
});

describe("Gemini's configuration", () => {
  it("is below the home that GEMINI_CLI_HOME names, with the folders that the user trusts but no login", async () => {
    const files = Object.fromEntries(
      ["settings.json", "trustedFolders.json", "oauth_creds.json", ".env"].map((name) => [
        `g/.gemini/${name}`,
        "{}",
      ]),
    );
    expect(paths(await prepare("gemini", files, { GEMINI_CLI_HOME: "$HOME/g" }))).toEqual([
      ".gemini/settings.json",
      ".gemini/trustedFolders.json",
    ]);
  });

  it("a key of Google Cloud is for its own host", async () => {
    expect(held(await prepare("gemini", {}, { GOOGLE_API_KEY: key }))).toEqual([
      ["GOOGLE_API_KEY", ["aiplatform.googleapis.com"], false],
    ]);
  });
});
