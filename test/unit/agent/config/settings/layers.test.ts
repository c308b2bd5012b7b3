import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { loadConfig, parseOverride } from "../../../../../src/agent/config/settings/load-config.js";
import { describeSource } from "../../../../../src/agent/config/settings/sources.js";

let home = "";

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), "brig-config-"));
});

afterAll(() => {
  rmSync(home, { recursive: true });
});

/** Weakest first. */
const layers = ["file", "profile", "environment", "-c", "flag"] as const;
type Layer = (typeof layers)[number];

/** Keys that any layer may set, at the top and in tables; the environment sets only the address. */
const keys = [
  "openai_base_url",
  "lease_seconds",
  "tools.js_repl",
  "sandbox_workspace_write.network_access",
  "shell_environment_policy.set.A",
] as const;
type Key = (typeof keys)[number];

function settingFor(key: Key, layer: Layer): string | number | boolean {
  const rank = layers.indexOf(layer) + 1;
  if (key === "lease_seconds") return rank;
  if (key === "openai_base_url") return `http://127.0.0.1:${rank}/v1`;
  return key.endsWith(".A") ? `value ${rank}` : rank % 2 === 0;
}

type Choice = Record<Key, readonly Layer[]>;

const anyChoice = fc.record(
  Object.fromEntries(
    keys.map((key) => {
      const usable = layers.filter((layer) => layer !== "environment" || key === "openai_base_url");
      return [key, fc.subarray([...usable])];
    }),
  ),
) as fc.Arbitrary<Choice>;

function settingsOf(layer: Layer, choice: Choice): [Key, string | number | boolean][] {
  return keys.filter((key) => choice[key].includes(layer)).map((key) => [key, settingFor(key, layer)]);
}

function toml(layer: Layer, choice: Choice, prefix: string): string {
  return settingsOf(layer, choice)
    .map(([key, value]) => `${prefix}${key} = ${JSON.stringify(value)}\n`)
    .join("");
}

async function load(choice: Choice) {
  const profile = "profiles.p.";
  const file = `# the file\n${toml("file", choice, "")}${toml("profile", choice, profile)}${profile}model = "m"\n`;
  writeFileSync(join(home, "config.toml"), file);
  const [address] = settingsOf("environment", choice);
  const loaded = await loadConfig(
    {
      brigHome: home,
      codexHome: "/proc/nowhere",
      home: "/h",
      openaiBaseUrl: address === undefined ? undefined : String(address[1]),
    },
    {
      profile: "p",
      overrides: settingsOf("-c", choice).map(([key, value]) =>
        parseOverride(`${key}=${JSON.stringify(value)}`),
      ),
      flags: Object.fromEntries(
        settingsOf("flag", choice).map(([key, value]) => [key, { flag: `--${key}`, value }]),
      ),
    },
  );
  return { ...loaded, lines: file.split("\n") };
}

describe("layers of the configuration", () => {
  it("each value, and where it comes from, is of the topmost layer that sets it", async () => {
    await fc.assert(
      fc.asyncProperty(anyChoice, async (choice) => {
        const { config, sources, lines } = await load(choice);
        for (const key of keys) {
          const top = layers.findLast((layer) => choice[key].includes(layer));
          const value = key.split(".").reduce<unknown>((inner, part) => Object(inner)[part], config);
          const source = sources.get(key);
          if (top === undefined) {
            expect(source).toBeUndefined();
            expect(value).toBe(defaults[key]);
            continue;
          }
          expect(value).toBe(settingFor(key, top));
          switch (source?.kind) {
            case "file":
            case "profile":
              expect(source.kind).toBe(top);
              expect(lines[source.line - 1]).toBe(
                `${top === "profile" ? "profiles.p." : ""}${key} = ${JSON.stringify(value)}`,
              );
              break;
            case "environment":
              expect([top, source.variable]).toEqual(["environment", "OPENAI_BASE_URL"]);
              break;
            case "override":
              expect(top).toBe("-c");
              break;
            case "flag":
              expect([top, source.flag]).toEqual(["flag", `--${key}`]);
              break;
            default:
              expect.fail(`${key} comes from ${source && describeSource(source)}`);
          }
        }
      }),
      { numRuns: 100 },
    );
  });
});

const defaults: Record<Key, unknown> = {
  openai_base_url: undefined,
  lease_seconds: 60,
  "tools.js_repl": undefined,
  "sandbox_workspace_write.network_access": false,
  "shell_environment_policy.set.A": undefined,
};

describe("describeSource", () => {
  it.each([
    [{ kind: "default" }, "default"],
    [{ kind: "file", file: "/a/config.toml", line: 3 }, "/a/config.toml:3"],
    [{ kind: "profile", file: "/a/config.toml", line: 3, profile: "p" }, "/a/config.toml:3 (profile p)"],
    [{ kind: "workspace", file: "/w/.brig/config.toml", line: 1 }, "/w/.brig/config.toml:1"],
    [{ kind: "environment", variable: "OPENAI_BASE_URL" }, "OPENAI_BASE_URL"],
    [{ kind: "override" }, "-c"],
    [{ kind: "flag", flag: "--model" }, "--model"],
  ] as const)("writes %j as %s", (source, text) => {
    expect(describeSource(source)).toBe(text);
  });
});
