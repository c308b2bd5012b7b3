import { describe, expect, it } from "vitest";
import { callOverrides } from "../../../../../src/services/mcp-server/codex/call-config.js";

describe("the config of a call", () => {
  it.each<[config: Record<string, unknown>, tables: object[]]>([
    [{ instructions: 'a "b"\n\u007fc' }, [{ instructions: 'a "b"\n\u007fc' }]],
    [{ 'mcp_servers."a.b".enabled': false }, [{ mcp_servers: { "a.b": { enabled: false } } }]],
    [{}, []],
    [
      { model_reasoning_effort: "high", "tools.view_image": false },
      [{ model_reasoning_effort: "high" }, { tools: { view_image: false } }],
    ],
    [{ sandbox_mode: "danger-full-access" }, [{ sandbox_mode: "danger-full-access" }]],
    [{ network: "none" }, [{ network: "none" }]],
    [
      { sandbox_workspace_write: { network_access: false, writable_roots: ["/a"] } },
      [{ sandbox_workspace_write: { network_access: false, writable_roots: ["/a"] } }],
    ],
    [{ "mcp_servers.docs.enabled": false }, [{ mcp_servers: { docs: { enabled: false } } }]],
    [{ "features.of_codex": true }, [{ features: { of_codex: true } }]],
  ])("%j is passed on", (config, tables) => {
    expect(callOverrides(config)).toEqual(tables);
  });

  it.each<[config: Record<string, unknown>, key: string]>([
    [{ "mcp_servers.x.sandbox": "host" }, "mcp_servers.x.sandbox"],
    [{ mcp_servers: { x: { enabled: false, command: "touch" } } }, "mcp_servers.x.command"],
    [{ '"mcp_servers" . "a.b".args': ["-c", "id"] }, 'mcp_servers."a.b".args'],
    [{ '"mcp\\u005fservers".x.url': "http://127.0.0.1/" }, "mcp_servers.x.url"],
    [{ "mcp_servers.x.env_vars": ["AWS_SECRET_ACCESS_KEY"] }, "mcp_servers.x.env_vars"],
    [{ "mcp_servers.x.network": "full" }, "mcp_servers.x.network"],
    [{ "mcp_servers.x.enabled": true }, "mcp_servers.x.enabled"],
    [{ mcp_servers: [{ command: "touch" }] }, "mcp_servers"],
    [{ network: "full" }, "network"],
    [{ network: "allowlist:a.org" }, "network"],
    [{ sandbox_workspace_write: { network_access: true } }, "sandbox_workspace_write.network_access"],
    [{ "sandbox_workspace_write.network_access": true }, "sandbox_workspace_write.network_access"],
    [{ "model_providers.x.base_url": "https://a.org" }, "model_providers.x.base_url"],
    [{ openai_base_url: "https://a.org" }, "openai_base_url"],
    [{ chatgpt_base_url: "https://a.org" }, "chatgpt_base_url"],
    [{ oauth: { issuer: "https://a.org" } }, "oauth.issuer"],
    [{ policy: "/mine.toml" }, "policy"],
    [{ runtime: "runc" }, "runtime"],
    [{ model_instructions_file: "/etc/passwd" }, "model_instructions_file"],
    [{ profile: "x", profiles: { x: { network: "full" } } }, "profiles.x.network"],
    [{ "projects.'/work'.trust_level": "untrusted" }, 'projects."/work".trust_level'],
  ])("%j is refused, and says who can set it", (config, key) => {
    expect(() => callOverrides(config)).toThrow(
      expect.objectContaining({
        code: "usage.invalid",
        message: `the setting ${key} is not for a call to decide: it reaches beyond the sandbox`,
        hint: expect.stringContaining("brig mcp-server -c"),
      }),
    );
  });

  it.each([[{ model: null }], [{ tools: { view_image: null } }]])(
    "%j is refused, since it has no value",
    (config) => {
      expect(() => callOverrides(config)).toThrow(expect.objectContaining({ code: "usage.invalid" }));
    },
  );

  it("a name that every object has is a key like any other", () => {
    const config = JSON.parse('{"__proto__":{"network":"full"},"tools":{"__proto__":{"shell":"local"}}}');
    const [own, tools] = callOverrides(config);
    for (const table of [own, tools?.tools]) expect(Object.keys(table as object)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(own)).toBe(Object.prototype);
  });

  it.each(["a b", 'model="a"\nnetwork', "__proto__ = 1\nnetwork", "", "a..b"])("%j is no key", (key) => {
    expect(() => callOverrides({ [key]: 1 })).toThrow("is not a key of the configuration");
  });
});
