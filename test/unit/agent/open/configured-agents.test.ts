import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadConfig } from "../../../../src/agent/config/settings/load-config.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { configuredAgents } from "../../../../src/agent/open/configured-options.js";
import { scriptedAgentModels } from "../../../../src/agent/open/open-models.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

async function configured(toml: string, files: Readonly<Record<string, string>> = {}) {
  await using home = await temporaryDirectory();
  for (const [name, text] of Object.entries({ ...files, "config.toml": toml }))
    await writeFile(join(home.path, name), text);
  const { config, warnings } = await loadConfig({ brigHome: home.path, codexHome: "/proc/nonexistent" });
  expect(warnings).toEqual([]);
  return await configuredAgents(config, { gates: {} });
}

it("reads the limits and the roles, and the file of a role, which the table overrides", async () => {
  const agents = await configured(
    '[agents]\nmax_threads = 3\nmodels = ["m"]\n[agents.reviewer]\ndescription = "Reviews."\nconfig_file = "r.toml"\nmodel = "own"\n',
    {
      "r.toml":
        'model = "other"\nmodel_reasoning_effort = "high"\nsandbox_mode = "read-only"\nnotify = ["x"]\n',
    },
  );
  expect(agents).toMatchObject({ maxDepth: 1, maxThreads: 3, models: ["m"] });
  expect(agents?.roles).toEqual({
    reviewer: expect.objectContaining({
      description: "Reviews.",
      model: "own",
      reasoningEffort: "high",
      sandboxMode: "read-only",
    }),
  });
});

it("says which file of a role is missing or wrong", async () => {
  const table = '[agents.a]\nconfig_file = "a.toml"\n';
  await expect(configured(table)).rejects.toMatchObject({
    code: "config.invalid",
    message: expect.stringMatching(/^the file of a role, .*\/a\.toml, does not exist$/),
  });
  await expect(configured(table, { "a.toml": "model = 1" })).rejects.toMatchObject({
    code: "config.invalid",
  });
});

it("starts none where they are off", async () => {
  expect(await configured("[agents]\nmax_depth = 0\n")).toBe(undefined);
});

it("plays the scripts of agents in the order of their start, also those of agents of agents", async () => {
  const script = parseScript(
    JSON.stringify({
      steps: [{ text: "root" }],
      agents: [
        { steps: [{ text: "one" }], agents: [{ steps: [{ text: "below one" }] }] },
        { steps: [{ text: "two" }] },
      ],
    }),
    "s.yaml",
  );
  const open = scriptedAgentModels(script, { threadId: "root" });
  const says = async (threadId: string, parentId: string) => {
    const model = await open({ threadId, parentId, model: "scripted", reasoningEffort: undefined });
    const request = { instructions: "", input: [], tools: [] };
    for await (const event of model.stream(request, new AbortController().signal))
      if (event.kind === "text-delta") return event.text;
    return null;
  };
  expect(await says("a", "root")).toBe("one");
  expect(await says("b", "root")).toBe("two");
  expect(await says("c", "a")).toBe("below one");
  await expect(says("d", "root")).rejects.toMatchObject({ code: "model.script" });
});

it("names the line of a mistake in the script of an agent", () => {
  const yaml = "steps:\n  - text: x\nagents:\n  - steps:\n      - calls: [{ shell: {} }]\n";
  expect(() => parseScript(yaml, "s.yaml")).toThrow(/^s\.yaml:5:\d+: the last step must not call a tool/);
});
