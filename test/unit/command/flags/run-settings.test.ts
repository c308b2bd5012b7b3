import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { resolveRun } from "../../../../src/agent/open/run-settings.js";
import type { AgentFlags } from "../../../../src/command/flags/agent-flags.js";
import { agentSettings, sessionHost } from "../../../../src/command/flags/agent-settings.js";
import { testContext } from "../../../support/cli-context.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

let root: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  root = directory.path;
  for (const name of ["home", "workspace", "more"]) mkdirSync(join(root, name));
});

async function resolved(flags: AgentFlags, { beginsSession = true } = {}) {
  const context = testContext({
    variables: { HOME: join(root, "home"), BRIG_HOME: join(root, "home", "brig") },
  });
  const options = { usualApproval: "never", beginsSession } as const;
  const settings = await agentSettings({ cd: join(root, "workspace"), ...flags }, context);
  const run = await resolveRun(settings, sessionHost(context), options);
  return { run, stderr: context.written().stderr };
}

describe("--add-dir under a policy that takes no such directories", () => {
  const flags = () => ({ sandbox: "read-only", addDir: [join(root, "more")] });

  it("is an error", async () => {
    await expect(resolved(flags())).rejects.toMatchObject({
      code: "usage.invalid",
      hint: "leave out --add-dir, or use --sandbox workspace-write",
    });
  });

  it("is a warning for a caller that stands in for Codex, whose mode may also be the usual one", async () => {
    for (const caller of [
      { toleratesAddDirs: true },
      { toleratesAddDirs: true, usualMode: "read-only" as const },
    ]) {
      const { sandbox = undefined, addDir } =
        caller.usualMode === undefined ? flags() : { addDir: flags().addDir };
      const { run, stderr } = await resolved({ sandbox, addDir, caller });
      expect(stderr).toBe(
        `brig: --add-dir has no effect under the policy read-only (${join(root, "more")}); ` +
          "use --sandbox workspace-write for commands to write there\n",
      );
      expect(run.sandbox.addDirs).toEqual([]);
      expect(run.setting.writableRoots).toEqual([]);
    }
  });

  it("is nothing to warn of where the policy takes it", async () => {
    const { run, stderr } = await resolved({ addDir: flags().addDir, caller: { toleratesAddDirs: true } });
    expect(stderr).toBe("");
    expect(run.sandbox.addDirs).toEqual([join(root, "more")]);
  });
});

describe("keys of Codex that brig ignores", () => {
  it("are named when a session begins, and not again when it goes on; mistakes are always named", async () => {
    mkdirSync(join(root, "home", "brig"));
    writeFileSync(join(root, "home", "brig", "config.toml"), 'modle = "a"\nnotify = ["x"]\n');
    const begun = await resolved({});
    expect(begun.stderr).toContain("these keys of Codex have no effect here: `notify`\n");
    expect(begun.stderr).not.toMatch(/brig: brig/);
    const continued = await resolved({}, { beginsSession: false });
    expect(continued.stderr).not.toContain("notify");
    for (const { stderr } of [begun, continued]) expect(stderr).toContain("unknown key `modle`");
  });
});
