import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { rules, serverRules } from "../../../../../src/agent/config/settings/workspace-settings.js";
import { describeType, notesOf, unwrapped } from "../../../../../src/agent/config/wrong-value.js";
import { type ConfigKey, configKeys } from "../../../../support/config-keys.js";

const file = fileURLToPath(new URL("../../../../../docs/configuration.md", import.meta.url));

/** After a change of the schema: npx vitest run --config test/vitest.config.ts test/unit/agent/config/settings/documentation.test.ts -u */
it("docs/configuration.md has every key with its type, default and meaning", async () => {
  const keys = configKeys();
  expect(keys.filter(({ description }) => description === "")).toEqual([]);
  const header = "| key | takes | default | meaning |\n|---|---|---|---|\n";
  const tightening = `${[...rules, ...serverRules("<name>")].map(({ key }) => `\`${key.join(".")}\``).join(", ")}\n`;
  const text = withSection(readFileSync(file, "utf8"), "keys", header + keys.map(rowOf).join(""));
  await expect(withSection(text, "tightening", tightening)).toMatchFileSnapshot(file);
});

function rowOf({ key, schema, description }: ConfigKey): string {
  const cells = [`\`${key}\``, describeType(schema), defaultOf(schema), description];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |\n`;
}

function defaultOf(schema: ConfigKey["schema"]): string {
  const { defaultValue } = unwrapped(schema);
  if (defaultValue !== undefined) return `\`${JSON.stringify(defaultValue)}\``;
  return notesOf(schema).fallback ?? "";
}

function withSection(text: string, name: string, content: string): string {
  const [start, end] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const from = text.indexOf(start) + start.length;
  const to = text.indexOf(end);
  expect(from).toBeGreaterThan(start.length);
  expect(to).toBeGreaterThanOrEqual(from);
  return text.slice(0, from) + content + text.slice(to);
}
