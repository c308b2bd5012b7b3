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
  const { signal } = new AbortController();
  const request = {
    argv: [agent],
    agent: undefined,
    secrets: [],
    access: "copy",
    shown: {},
    signal,
  } as const;
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

describe("Codex's login", () => {
  const jwt = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.sig`;
  const account = { chatgpt_account_id: "account-of-the-person", chatgpt_plan_type: "pro" };
  const tokens = (changes: object = {}) => ({
    ...{ id_token: jwt({ "https://api.openai.com/auth": account }), access_token: "token-of-the-person" },
    ...{ refresh_token: "refresh", ...changes },
  });
  const file = ".codex/auth.json";
  const chatgpt = (changes?: object) => JSON.stringify({ OPENAI_API_KEY: null, tokens: tokens(changes) });

  it("with ChatGPT stays outside, and is for requests to the model alone", async () => {
    const prepared = await prepare("codex", { [file]: chatgpt() });
    expect(prepared.keys).toEqual([
      {
        ...{ variable: "CHATGPT_ACCESS_TOKEN", value: "token-of-the-person", headers: ["authorization"] },
        ...{ hosts: ["chatgpt.com"], isPlainHttp: false },
      },
      {
        ...{
          variable: "CHATGPT_ACCOUNT_ID",
          value: "account-of-the-person",
          headers: ["chatgpt-account-id"],
        },
        ...{ hosts: ["chatgpt.com"], isPlainHttp: false },
      },
    ]);
    expect(prepared.hosts).toEqual(["chatgpt.com"]);
    expect(prepared.rules).toEqual([{ host: "chatgpt.com", path: "/backend-api/codex/**" }]);
    expect(prepared.missing).toEqual([]);
    expect(prepared.login).toMatchObject({ kind: "chatgpt", login: { plan: "pro" } });
    expect(prepared.notes.join()).toContain("Codex's own");
  });

  it("is for the address that the configuration names, and a key comes before it", async () => {
    const files = {
      [file]: chatgpt(),
      ".codex/config.toml": 'openai_base_url = "https://models.example/codex/"',
    };
    const prepared = await prepare("codex", files);
    expect(prepared.rules).toEqual([{ host: "models.example", path: "/codex/**" }]);
    expect(held(await prepare("codex", files, { OPENAI_API_KEY: key }))).toEqual([
      ["OPENAI_API_KEY", ["models.example"], false],
    ]);
    const both = JSON.stringify({ OPENAI_API_KEY: "sk-of-the-login", tokens: tokens() });
    expect((await prepare("codex", { [file]: both })).login).toEqual({
      ...{ kind: "key", path: ".codex/auth.json", key: "OPENAI_API_KEY" },
    });
  });

  it("is not used once it has expired, which is said", async () => {
    const expired = chatgpt({ access_token: jwt({ exp: 1_700_000_000 }) });
    const prepared = await prepare("codex", { [file]: expired });
    expect(prepared.keys).toEqual([]);
    expect(prepared.missing).toContain("OPENAI_API_KEY");
    expect(prepared.notes).toContain("Codex's own login with ChatGPT has expired");
    const lasting = chatgpt({ access_token: jwt({ exp: 5_000_000_000 }) });
    expect((await prepare("codex", { [file]: lasting })).keys).toHaveLength(2);
  });

  it.each([
    "",
    "{",
    JSON.stringify({ tokens: tokens({ access_token: "two\nlines-of-it" }) }),
    JSON.stringify({ tokens: tokens({ id_token: "none" }) }),
    JSON.stringify({ tokens: { access_token: 7 } }),
  ])("is none if the file says %j", async (text) => {
    const prepared = await prepare("codex", { [file]: text });
    expect([prepared.keys, prepared.login]).toEqual([[], null]);
  });

  it("is read anew where Codex has renewed it meanwhile, unless it is another account's by then", async () => {
    const home = await mkdtemp(join(tmpdir(), "brig-test-"));
    onTestFinished(() => rm(home, { recursive: true }));
    const path = join(home, file);
    await mkdir(dirname(path), { recursive: true });
    const write = async (changes: object) => await writeFile(path, chatgpt(changes));
    await write({});
    const { signal } = new AbortController();
    const request = {
      argv: ["codex"],
      agent: undefined,
      secrets: [],
      access: "copy",
      shown: {},
      signal,
    } as const;
    const { login } = await prepareAgent(request, readEnvironment({ HOME: home }));
    if (login?.kind !== "chatgpt") throw new Error("there is no login with ChatGPT");
    const current = async () => (await login.login.current(signal)).accessToken;
    expect(await current()).toBe("token-of-the-person");
    await write({ access_token: "token-renewed" });
    expect(await current()).toBe("token-renewed");
    await write({ access_token: "token-of-another", account_id: "another-account" });
    expect(await current()).toBe("token-of-the-person");
  });
});
