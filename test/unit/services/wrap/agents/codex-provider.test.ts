import { describe, expect, it } from "vitest";
import { readCodexProvider } from "../../../../../src/services/wrap/agents/codex-provider.js";

const provider = (more: string) => `model_provider = "own"\n[model_providers.own]\n${more}\n`;

describe("the provider that Codex's configuration chooses", () => {
  it("without one it is OpenAI's, which needs a login", () => {
    expect(readCodexProvider("")).toEqual({
      keys: ["CODEX_API_KEY", "OPENAI_API_KEY"].map((variable) => ({
        ...{ variable, hosts: ["api.openai.com"], isPlainHttp: false },
      })),
      hosts: ["api.openai.com"],
      needsLogin: true,
      chatGptUrl: "https://chatgpt.com/backend-api/codex",
      configuration: "",
    });
    expect(readCodexProvider('openai_base_url = "https://proxy.example:8443/v1"').hosts).toEqual([
      "proxy.example:8443",
    ]);
  });

  it("another one has its own host and variable, and the configuration stays as it is", () => {
    const text = provider('base_url = "https://models.example/v1"\nenv_key = "OWN_KEY"');
    expect(readCodexProvider(text)).toEqual({
      keys: [{ variable: "OWN_KEY", hosts: ["models.example"], isPlainHttp: false }],
      hosts: ["models.example"],
      needsLogin: false,
      chatGptUrl: "https://chatgpt.com/backend-api/codex",
      configuration: text,
    });
  });

  it("has its key sent without TLS only where its address is one of plain HTTP", () => {
    const sentPlainly = ["http", "https"].map((scheme) => {
      const text = provider(`base_url = "${scheme}://models.example/v1"\nenv_key = "OWN_KEY"`);
      return readCodexProvider(text).keys.map(({ isPlainHttp }) => isPlainHttp);
    });
    expect(sentPlainly).toEqual([[true], [false]]);
  });

  it.each(["127.0.0.1", "localhost", "[::1]"])(
    "a model at %s is this machine's, seen from inside",
    (host) => {
      const text = provider(`base_url = "http://${host}:11434/v1"`);
      const { hosts, configuration } = readCodexProvider(text);
      expect(hosts).toEqual(["host.internal:11434"]);
      expect(configuration).toContain('base_url = "http://host.internal:11434/v1"');
    },
  );

  it("the login is read from a file, since a sandbox has no keyring", () => {
    const { configuration } = readCodexProvider('model = "m"\ncli_auth_credentials_store = "keyring"');
    expect(configuration).toBe('model = "m"\n');
  });

  it("passes on what it cannot read, so that Codex itself says what is wrong", () => {
    expect(readCodexProvider("= what")).toMatchObject({ configuration: "= what", hosts: ["api.openai.com"] });
    expect(readCodexProvider(provider('base_url = "no address"')).hosts).toEqual([]);
  });
});
