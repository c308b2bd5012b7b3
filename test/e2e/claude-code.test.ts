import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { anthropicWire, startPlainModel } from "../support/agent-model.js";
import { type ClaudePlace, claudePlace, expectNothingOutside, marked } from "../support/claude-place.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const claude = await testProgram("claude-code");

interface ClaudeRun {
  calls: readonly { name?: string; args: Record<string, unknown> }[];
  /** Further settings: where, and which. */
  also?: Readonly<Record<string, object>>;
  /** On top of what a person has. */
  env?: Record<string, string>;
  flags?: readonly string[];
}

/** Runs the real program with a model that makes these calls. Returns what it was told of each. */
async function runClaude(place: ClaudePlace, { calls, also = {}, env, flags = [] }: ClaudeRun) {
  const turns = calls.map(({ name = "Bash", args }, at) => ({
    call: { id: `toolu_${at}`, name, args: { description: "as asked", ...args } },
  }));
  const model = await startPlainModel(anthropicWire, [...turns, { text: "All done." }]);
  onTestFinished(() => model[Symbol.asyncDispose]());
  const home = join(place.home, "../home-of-person");
  await mkdir(home, { recursive: true });
  for (const [path, settings] of Object.entries(also)) {
    const file = join(place.workspace, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify(settings));
  }
  const { stdout, stderr, exitCode } = await execa(
    claude.path,
    ["-p", "go", "--output-format", "stream-json", "--verbose", ...flags],
    {
      cwd: place.workspace,
      env: {
        ...{ HOME: home, IS_SANDBOX: "1", ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none" },
        ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", ...env },
      },
      ...{ stdin: "ignore", reject: false },
    },
  );
  expect(exitCode, stdout + stderr).toBe(0);
  const messages = stdout.split("\n").map((line) => JSON.parse(line));
  const results = messages
    .filter(({ type }) => type === "user")
    .flatMap(({ message }) => message.content)
    .filter(({ type }) => type === "tool_result");
  return { results: results.map(({ content }) => String(content)), messages };
}

const bash = (command: string, more: object = {}) => ({ args: { command, ...more } });
const skipsPermissions = ["--dangerously-skip-permissions"];

describe.skipIf(claude.missing !== null)(
  withReason("Claude Code after brig setup claude", claude.missing),
  () => {
    it("runs its commands in the sandbox of the project, without asking, and goes on in the directory where the last was", async () => {
      const place = await claudePlace();
      const { results } = await runClaude(place, {
        calls: [
          bash(marked(place, "hostname; mkdir sub; cd sub; cat <<'E'\nit's one\nE")),
          bash("pwd > where; pwd; exit 3"),
          bash(marked(place, "echo later > background"), { run_in_background: true }),
          bash("until [ -s background ]; do sleep 0.1; done; cat background"),
          bash(`: ${"x".repeat(200_000)}\necho long`),
        ],
      });
      expect(results[0]).toBe("brig\nit's one");
      expect(results[1]).toContain(`${place.workspace}/sub`);
      expect(results[1]).toContain("Exit code 3");
      expect(results[3]).toBe("later");
      expect(results[4]).toBe("long");
      expect(await readFile(join(place.workspace, "sub/where"), "utf8")).toBe(`${place.workspace}/sub\n`);
      expectNothingOutside(place);
    }, 300_000);

    it("runs in the sandbox what its monitor watches", async () => {
      const place = await claudePlace();
      const { results } = await runClaude(place, {
        calls: [
          {
            name: "Monitor",
            args: { command: marked(place, "hostname > watched"), timeout_ms: 60_000, persistent: false },
          },
          bash("until [ -s watched ]; do sleep 0.1; done; cat watched"),
        ],
      });
      expect(results[1]).toBe("brig");
      expectNothingOutside(place);
    }, 300_000);

    it("leaves the person's own hooks on the machine, and obeys the rules that deny commands", async () => {
      const place = await claudePlace();
      const theirs = { type: "command", command: `cat > ${join(place.home, "../seen")}` };
      const { results } = await runClaude(place, {
        calls: [bash("touch denied"), bash("echo allowed")],
        also: {
          ".claude/settings.json": {
            hooks: { PostToolUse: [{ matcher: "Bash", hooks: [theirs] }] },
            permissions: { deny: ["Bash(touch:*)"] },
          },
        },
      });
      expect(results[0]).toContain("denied");
      expect(results[1]).toBe("allowed");
      expect(existsSync(join(place.workspace, "denied"))).toBe(false);
      expect(await readFile(join(place.home, "../seen"), "utf8")).toContain("echo allowed");
    }, 300_000);

    it("runs commands in the sandbox by the hook alone where another file takes the program for commands away", async () => {
      const place = await claudePlace();
      const { results } = await runClaude(place, {
        calls: [bash(marked(place, "hostname"))],
        flags: ["--settings", JSON.stringify({ env: { CLAUDE_CODE_SHELL_PREFIX: "" } }), ...skipsPermissions],
      });
      expect(results).toEqual(["brig"]);
      expectNothingOutside(place);
    }, 300_000);

    const failures: [string, (place: ClaudePlace) => Promise<Partial<ClaudeRun>>][] = [
      [
        "hooks are turned off",
        async () => ({ flags: ["--settings", '{"disableAllHooks":true}', ...skipsPermissions] }),
      ],
      [
        "the hook takes too long",
        async (place) => {
          const settings = JSON.parse(await readFile(place.settings, "utf8"));
          settings.hooks.PreToolUse[0].hooks[0].timeout = 1;
          await writeFile(place.settings, JSON.stringify(settings));
          await writeFile(join(dirname(place.shell), "hook"), "#!/bin/sh\nexec sleep 30\n");
          return {};
        },
      ],
      [
        "the hook is gone",
        async (place) => {
          await writeFile(join(dirname(place.shell), "hook"), "#!/no/such/interpreter\n");
          return {};
        },
      ],
      [
        "the hook crashes, and its failures would pass",
        async (place) => {
          const settings = JSON.parse(await readFile(place.settings, "utf8"));
          delete settings.hooks.PreToolUse[0].hooks[0].onFailure;
          await writeFile(place.settings, JSON.stringify(settings));
          await writeFile(join(dirname(place.shell), "hook"), "#!/bin/sh\nexit 1\n");
          return {};
        },
      ],
      [
        "brig is gone",
        async (place) => {
          for (const name of ["hook", "shell"]) {
            const file = join(dirname(place.shell), name);
            await writeFile(file, (await readFile(file, "utf8")).replace("main.js", "gone.js"));
          }
          return {};
        },
      ],
      ["no container engine answers", async () => ({ env: { DOCKER_HOST: "unix:///no/such.sock" } })],
    ];

    it.each(failures)(
      "runs nothing on the machine where %s",
      async (_, prepare) => {
        const place = await claudePlace();
        const more = await prepare(place);
        const { results } = await runClaude(place, {
          calls: [
            bash(marked(place, "touch inside; echo ran")),
            bash(marked(place, "echo ran"), { run_in_background: true }),
          ],
          flags: skipsPermissions,
          ...more,
        });
        expect(results).toHaveLength(2);
        expect(results[0]).not.toContain("ran\n");
        expectNothingOutside(place);
        expect(await readdir(place.workspace)).not.toContain("inside");
      },
      300_000,
    );

    it("would run them on the machine without brig", async () => {
      const place = await claudePlace();
      await place.setUp("--undo");
      const { results } = await runClaude(place, {
        calls: [bash(marked(place, "echo ran"))],
        flags: skipsPermissions,
      });
      expect(results).toEqual(["ran"]);
      expect(existsSync(place.outside)).toBe(true);
    }, 300_000);
  },
);
