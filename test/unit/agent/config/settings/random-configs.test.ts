import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig } from "../../../../../src/agent/config/settings/load-config.js";
import { isBrigError } from "../../../../../src/errors.js";
import { nearly, runs } from "../../../../support/fuzz.js";

const good = [
  `model = "a"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
profile = "slow"
[sandbox_workspace_write]
writable_roots = ["/one"]
network_access = true
[profiles.slow]
model = "b"
[model_providers.local]
name = "Local"
base_url = "http://127.0.0.1:8080/v1"
[mcp_servers.one]
command = "server"
args = ["--stdio"]
env = { "A" = "b" }
`,
  `network = "allowlist:a.example,*.b.example:8443"
[shell_environment_policy]
inherit = "core"
exclude = ["*KEY*"]
[tools]
view_image = false
[[egress.rules]]
host = "a.example"
methods = ["GET"]
paths = ["/x/*"]
[egress.secrets.token]
host = "a.example"
header = "Authorization"
env = "TOKEN"
`,
].map((text) => Buffer.from(text));

/** What was found to be wrong once, and is tried each time. */
const found: [Buffer][] = [
  [Buffer.from('"\\u001b[2J\\u202e" = 1\n')],
  [Buffer.from('profile = "\\u001b[31m"\n')],
  [Buffer.from("[__proto__]\nmodel = 1\n[constructor.prototype]\nmodel = 2\n")],
  [Buffer.from("a = ".padEnd(20_000, "["))],
  [Buffer.from(`${"a.".repeat(5000)}a = 1`)],
  [Buffer.from('[mcp_servers."\\u001b]0;x\\u0007"]\ncommand = 1\n')],
];

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
  mkdirSync(join(home, "brig"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

describe("a config.toml of nearly right bytes", () => {
  it("is refused by name, or read, and changes nothing else", async () => {
    const places = { brigHome: join(home, "brig"), codexHome: join(home, "codex"), home: "/h" };
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(nearly(good), async (bytes) => {
        writeFileSync(join(home, "brig", "config.toml"), bytes);
        try {
          await loadConfig(places, {});
          accepted++;
        } catch (error) {
          if (!isBrigError(error)) throw error;
          expect(error.code).toBe("config.invalid");
          expect(error.message.length).toBeLessThan(20_000);
        }
      }),
      { numRuns: runs({ short: 300, deep: 10_000 }), examples: found },
    );
    expect(accepted).toBeGreaterThan(0);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });
});
