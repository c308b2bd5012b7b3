import { describe, expect, it } from "vitest";
import { withoutCredentials } from "../../../../../src/services/wrap/configuration/without-credentials.js";

const cleaned = (fileName: string, text: string, secrets: string[] = []) =>
  withoutCredentials(text, { fileName, secrets });

describe("a configuration without credentials", () => {
  it("leaves out settings by their names, wherever they are, and keeps the others", () => {
    const text = `model = "m"
max_tokens = 5
[model_providers.a]
env_key = "OPENAI_API_KEY"
experimental_bearer_token = "abc"
http_headers = { Authorization = "Bearer abc", "X-Api-Key" = "abc", Accept = "text/plain" }
[mcp_servers.b]
bearer_token_env_var = "B_TOKEN"
env = { B_TOKEN = "abc", LEVEL = "3" }
`;
    const result = cleaned("config.toml", text);
    expect(result).toMatchObject({
      removed: [
        "model_providers.a.experimental_bearer_token",
        "model_providers.a.http_headers.Authorization",
        "model_providers.a.http_headers.X-Api-Key",
        "mcp_servers.b.env.B_TOKEN",
      ],
    });
    const kept = result.kind === "text" ? result.text : "";
    expect(kept).not.toContain("abc");
    for (const one of [
      'model = "m"',
      "max_tokens = 5",
      'env_key = "OPENAI_API_KEY"',
      'LEVEL = "3"',
      "text/plain",
    ])
      expect(kept).toContain(one);
  });

  it.each([
    ["settings.json", '{"env":{"ANTHROPIC_API_KEY":"abc"},"model":"m"}', "env.ANTHROPIC_API_KEY"],
    ["conf.yml", "openai-api-key: abc\nmodel: m\n", "openai-api-key"],
    ["config.toml", 'args = ["--key", "sk-abcdefghijklmnopqrst"]', "args[1]"],
    ["config.toml", 'command = "run --with my-secret-value"', "command"],
  ])("of %s with %s: %s", (fileName, text, removed) => {
    expect(cleaned(fileName, text, ["my-secret-value"])).toMatchObject({ kind: "text", removed: [removed] });
  });

  it("keeps the very text of a file without credentials, with comments and references to variables", () => {
    for (const [fileName, text] of [
      ["config.toml", '# mine\nmodel = "m"  # this one\n'],
      ["opencode.json", '{ "apiKey": "{env:OPENAI_API_KEY}" }'],
      ["AGENTS.md", "Never print a token.\n"],
    ] as const)
      expect(cleaned(fileName, text)).toEqual({ kind: "text", text, removed: [] });
  });

  it.each([
    ["AGENTS.md", "Use ghp_abcdefghijklmnopqrstuvwx for GitHub.", []],
    ["notes", "the password is hunter2-hunter2", ["hunter2-hunter2"]],
    ["key.md", "-----BEGIN OPENSSH PRIVATE KEY-----\n", []],
    ["opencode.jsonc", '{ // comment\n "apiKey": "abc" }', []],
    ["broken.toml", 'token = "abc"\n= what', []],
  ])("leaves out all of %s, from which nothing can be taken away", (fileName, text, secrets) => {
    expect(cleaned(fileName, text, secrets)).toMatchObject({ kind: "left-out" });
  });

  it("a broken file without such names is passed on, so that the agent itself says what is wrong", () => {
    expect(cleaned("broken.toml", "= what")).toMatchObject({ kind: "text", text: "= what" });
  });
});
