import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { type ModelTurn, startAgentModel } from "../support/agent-model.js";
import { brig } from "../support/cli.js";
import { type RealAgent, realAgents, searchPathWith } from "../support/real-agents.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { Terminal } from "../support/terminal.js";

const key = "key-of-the-person-0123456789abcdef";

/** A person's machine with the agent on it, whose model is a server of HTTPS. */
async function openPlace(agent: RealAgent, commands: readonly string[]) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const turns = commands.map((command): ModelTurn => {
    return { call: { name: agent.shellTool, args: { command, description: "as asked" } } };
  });
  const model = await startAgentModel(agent.wire, [...turns, { text: "All done." }]);
  onTestFinished(() => model[Symbol.asyncDispose]());
  const [workspace, home, brigHome] = ["workspace", "home", "brig"].map((name) => join(directory.path, name));
  const files = { ...agent.files(model.url), "../authority.pem": model.authority, "../workspace/.keep": "" };
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(home ?? "", path)), { recursive: true });
    await writeFile(join(home ?? "", path), text);
  }
  const env = {
    HOME: home ?? "",
    PATH: searchPathWith(agent),
    BRIG_HOME: brigHome ?? "",
    NODE_EXTRA_CA_CERTS: join(directory.path, "authority.pem"),
    [agent.keyVariable]: key,
    ...agent.variables(model.url),
  };
  return {
    workspace: workspace ?? "",
    brigHome: brigHome ?? "",
    env,
    model,
    wrap: (args: string[]) => brig(["wrap", ...args], { cwd: workspace ?? "", env }),
  };
}

const look = "echo made > made.txt; pwd; curl -sS http://other.example 2>&1; true";

describe.each(realAgents)("brig wrap -- $name", (agent) => {
  it.skipIf(agent.program.missing !== null)(
    withReason(
      "runs the host's program with its model's host alone, nobody inside finds the key, and it goes on by name",
      agent.program.missing,
    ),
    // Two starts of a large program, and a search of all its memory.
    { timeout: 900_000 },
    async () => {
      const search = `python3 find-key.py ${key.slice(0, -1)} ${key.slice(-1)} ${agent.keyVariable} > found.json`;
      const place = await openPlace(agent, [look, search]);
      const fixture = join(packageRoot, "test/fixtures/find-key.py");
      await writeFile(join(place.workspace, "find-key.py"), await readFile(fixture));
      const first = ["--name", "work", "--", agent.name, ...agent.run("remember the word heron")];
      const { exitCode, stdout, stderr } = await place.wrap(first);
      expect(exitCode, stderr).toBe(0);
      expect(stdout).toContain("All done.");
      expect(stderr).toContain("of this machine, mounted read-only");
      expect(stderr).toMatch(
        new RegExp(`${agent.keyVariable} stays outside, and is sent to host\\.internal:\\d+ only`),
      );
      expect(await readFile(join(place.workspace, "made.txt"), "utf8")).toBe("made\n");
      const last = place.model.requests.at(-1)?.body;
      expect(last).toContain(place.workspace);
      expect(last).toContain("allow-list allows other.example");
      for (const host of agent.refused) expect(stderr).toContain(`allow-list allows ${host}`);

      const keys = place.model.requests.map(({ headers }) => headers[agent.keyHeader]);
      expect(new Set(keys)).toEqual(new Set([key]));
      const found = JSON.parse(await readFile(join(place.workspace, "found.json"), "utf8"));
      expect(found.key).toEqual([]);
      expect(found.placeholder).toContainEqual(expect.stringMatching(/^environ of /));
      expect(found.placeholder).toContainEqual(expect.stringMatching(/^memory of /));
      const kept = await execa("grep", ["-rlaF", key, place.brigHome], { reject: false });
      expect(kept.stdout).toBe("");

      const second = await place.wrap(["--resume", "work", "--", agent.name, ...agent.goOn("and now?")]);
      expect(second.exitCode, second.stderr).toBe(0);
      expect(place.model.requests.at(-1)?.body).toMatch(/heron[\s\S]*All done\.[\s\S]*and now\?/);
    },
  );
});

const claude = realAgents.find(({ name }) => name === "claude");

it.skipIf(claude?.program.missing !== null)(
  withReason("Claude Code asks nothing in a folder that the person trusts", claude?.program.missing ?? null),
  async () => {
    if (claude === undefined) return;
    const place = await openPlace(claude, []);
    const options = { cwd: place.workspace, env: place.env };
    for (const isFirst of [true, false]) {
      await using terminal = await Terminal.open(["wrap", "--", "claude"], options);
      terminal.screen.terminal.onData((answer) => terminal.type(answer));
      if (isFirst) {
        await terminal.waitForScreen(/Do you trust what is in/);
        terminal.type("y\r");
      }
      await terminal.waitForScreen(/Claude Code v[\s\S]*API Usage Billing/);
      expect(terminal.screen.rows.join("\n")).not.toMatch(/trust|Do you want to use this API key/i);
      terminal.type("say it");
      await terminal.waitForScreen(/say it/);
      terminal.type("\r");
      await terminal.waitForScreen(/All done\./);
      for (const key of ["\x03", "\x03", "\x03"]) terminal.type(key);
      await terminal.end();
    }
  },
);
