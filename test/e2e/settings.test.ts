import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { BrigOptions } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import {
  callDone,
  completed,
  created,
  messageDone,
  type Reply,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";

const policies = fileURLToPath(new URL("../../sandbox-policies", import.meta.url));
const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];

let home: string;
let project: string;
let workspace: string;

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  home = join(directory.path, "home");
  project = join(directory.path, "project");
  workspace = join(project, "part");
  await mkdir(home);
  await mkdir(workspace, { recursive: true });
});

/** With that configuration file. */
async function run(config: string, args: readonly string[], { env }: BrigOptions = {}) {
  await writeFile(join(home, "config.toml"), config);
  return await brigHere(["run", ...args, "go"], {
    cwd: workspace,
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "key", ...env },
  });
}

/** A run whose model is an endpoint that answers so. */
async function asked(config: string, replies: readonly Reply[] = [respond(messageDone("ok"))]) {
  await using server = await startResponsesServer(replies);
  const done = await run(config, onRuntime, { env: { OPENAI_BASE_URL: server.url } });
  expect(done.exitCode, done.stderr).toBe(0);
  return { done, bodies: server.requests.map(({ body }) => body) };
}

/** A run of these steps, and what came of each of their calls. */
async function played(config: string, steps: readonly object[], flags: readonly string[] = onRuntime) {
  const script = join(home, "script.json");
  await writeFile(script, JSON.stringify({ steps: [...steps, { text: "done" }] }));
  const done = await run(config, [...flags, "--script", script]);
  expect(done.exitCode, done.stderr).toBe(0);
  const file = /^session file (\/.*)$/m.exec(done.stderr)?.[1] ?? "";
  const records = (await readFile(file, "utf8"))
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  const outputs = records
    .filter(({ payload }) => payload.type === "function_call_output")
    .map(({ payload }): string => payload.output);
  return { outputs, egress: records.filter(({ type }) => type === "brig.egress") };
}

describe("what config.toml says of the model", () => {
  it.each<[string, string, object]>([
    [
      "how it reasons and answers, and in which tier",
      'model = "gpt-5-test"\nmodel_reasoning_effort = "high"\nmodel_reasoning_summary = "detailed"\nmodel_verbosity = "low"\nservice_tier = "fast"\n',
      {
        model: "gpt-5-test",
        reasoning: { effort: "high", summary: "detailed" },
        text: { verbosity: "low" },
        service_tier: "priority",
      },
    ],
    [
      "that it reasons, though nobody knows it",
      'model = "mine"\nmodel_supports_reasoning_summaries = true\n',
      { reasoning: { summary: "auto" } },
    ],
    [
      "that it does not, though others of its name do",
      'model = "gpt-5-test"\nmodel_supports_reasoning_summaries = false\n',
      { reasoning: null, include: [] },
    ],
  ])("is sent: %s", async (_, config, body) => {
    const { bodies } = await asked(config);
    expect(bodies[0]).toMatchObject(body);
  });

  it("decides when its window is full", async () => {
    const usage = { input_tokens: 900, output_tokens: 100, total_tokens: 1000 };
    const full: Reply = {
      kind: "stream",
      events: [created(), callDone("a", "shell", { command: ["true"] }), completed(usage)],
    };
    const replies = [full, respond(messageDone("All is well.")), respond(messageDone("Done."))];
    const { bodies } = await asked('model = "mine"\nmodel_context_window = 1100\n', replies);
    expect(bodies.map(({ tools }) => (tools as unknown[]).length > 0)).toEqual([true, false, true]);
    expect(JSON.stringify(bodies[2]?.input)).toContain("All is well.");
  });
});

describe("what config.toml says of instructions", () => {
  it("adds the person's own, and other names of project files", async () => {
    await writeFile(join(workspace, "GUIDE.md"), "Use tabs.\n");
    const { bodies } = await asked(
      'instructions = "Be brief."\nproject_doc_fallback_filenames = ["GUIDE.md"]\n',
    );
    expect(JSON.stringify(bodies[0]?.input)).toMatch(/<INSTRUCTIONS>\\nBe brief\.\\n\\nUse tabs\./);
  });

  it("names what the top of a project holds, and a file up there that the sandbox lacks is told of", async () => {
    await writeFile(join(project, "top.txt"), "");
    await writeFile(join(project, "AGENTS.md"), "Out of reach.\n");
    const usual = await asked("");
    expect(usual.done.stderr).not.toContain("AGENTS.md");
    const marked = await asked('project_root_markers = ["top.txt"]\n');
    expect(marked.done.stderr).toContain(`${join(project, "AGENTS.md")} is not used: the sandbox`);
  });
});

describe("what config.toml says of commands", () => {
  it("opens further directories and the network to them, and sets their lease and variables", async () => {
    const further = join(project, "further");
    await mkdir(further);
    const config = `lease_seconds = 77
shell_environment_policy.set = { KEPT = "kept", LEFT = "left" }
shell_environment_policy.include_only = ["KEP*"]
[sandbox_workspace_write]
writable_roots = [${JSON.stringify(further)}]
network_access = true
`;
    const cmd = [
      `echo written > ${further}/new`,
      'echo "vars=$KEPT/$LEFT"',
      "tr '\\0' ' ' < /proc/1/cmdline; echo",
      "tail -n +3 /proc/net/dev | grep -cv lo:",
    ].join("\n");
    const { outputs, egress } = await played(config, [{ calls: [{ exec_command: { cmd, login: false } }] }]);
    const [output] = outputs;
    expect(output).toContain("vars=kept/\n");
    expect(output).toContain("--lease 77");
    expect(output).toMatch(/\n1\n*$/);
    expect(await readFile(join(further, "new"), "utf8")).toBe("written\n");
    expect(egress).toMatchObject([{ payload: { network: "full" } }]);
  });

  it("forbids login shells, and looks at a running command no longer than it may", async () => {
    const { outputs } = await played("allow_login_shell = false\nbackground_terminal_max_timeout = 5000\n", [
      { calls: [{ exec_command: { cmd: "true", login: true } }] },
      { calls: [{ exec_command: { cmd: "sleep 60", yield_time_ms: 250 } }] },
      {
        expect: { matches: "session ID (?<id>\\d+)" },
        calls: [{ write_stdin: { session_id: `\${id}`, chars: "", yield_time_ms: 20_000 } }],
      },
    ]);
    const [refused, , polled] = outputs;
    expect(refused).toContain("login shell is disabled by config");
    expect(polled).toMatch(/Wall time: 5\.\d+ seconds/);
  });

  it("names the policy file they run under, beside itself, but for a mode that a flag asks for", async () => {
    await cp(join(policies, "read-only.toml"), join(home, "strict.toml"));
    const steps = [{ calls: [{ exec_command: { cmd: "touch new && echo touched", login: false } }] }];
    const config = 'policy = "strict.toml"\n';
    const { outputs } = await played(config, steps);
    expect(outputs[0]).toContain("Read-only file system");
    const flagged = await played(config, steps, [...onRuntime, "-s", "workspace-write"]);
    expect(flagged.outputs[0]).toContain("touched");
  });

  it.each([
    ["the image", 'container_image = "brig-test/nonesuch:1"', 'no image "brig-test/nonesuch:1"'],
    ["the runtime", 'runtime = "nonesuch"', "nonesuch"],
    ["the network", 'network = "allowlist:*"', "write @public for every public host"],
  ])("names %s", async (_, config, message) => {
    const script = join(home, "script.yaml");
    await writeFile(script, "steps: [{ text: done }]");
    const done = await run(`${config}\n`, ["--script", script]);
    expect(done.exitCode).not.toBe(0);
    expect(done.stdout).toBe("");
    expect(done.stderr).toContain(message);
  });
});
