import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { realCodex, runRealCodex, whyNoCodex } from "../support/real-codex.js";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { Terminal } from "../support/terminal.js";

/** The text that the group `id` of the step before has matched. */
const captured = `$${"{id}"}`;

const counting = {
  steps: [
    { calls: [{ spawn_agent: { message: "count the files", agent_type: "explorer" } }] },
    { expect: [{ matches: '"agent_id":"(?<id>[^"]+)"' }], calls: [{ wait_agent: { targets: [captured] } }] },
    { expect: [{ contains: "two" }], text: "It found two." },
  ],
  agents: [{ steps: [{ calls: [{ exec_command: { cmd: "ls | wc -l" } }] }, { text: "There are two." }] }],
};

async function place(script: object = counting) {
  const folder = await temporaryDirectory();
  onTestFinished(() => folder[Symbol.asyncDispose]());
  const workspace = join(folder.path, "workspace");
  const home = join(folder.path, "home");
  await mkdir(workspace);
  await mkdir(home);
  await writeFile(join(workspace, "a"), "");
  await writeFile(join(workspace, "b"), "");
  const file = join(folder.path, "script.yaml");
  await writeFile(file, JSON.stringify(script));
  return { folder: folder.path, workspace, home, script: file, env: { BRIG_HOME: home } };
}

describe("brig run with agents", () => {
  it("prints what each agent does behind its name, and lists its session below its parent's", async () => {
    const { workspace, env, script } = await place();
    const run = brig(["run", "go", "--script", script], { cwd: workspace, env });
    const { exitCode, stdout, stderr } = await run;
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe("It found two.\n");
    expect(stderr).toContain("[Ada (explorer)] started: count the files\n");
    expect(stderr).toContain("[Ada (explorer)] $ ls | wc -l\n");
    expect(stderr).toContain("[Ada (explorer)] done: There are two.\n");
    expect(await containersOf(run.pid)).toEqual([]);
    const listed = await brigHere(["sessions", "--json"], { cwd: workspace, env });
    const [first, second] = JSON.parse(listed.stdout);
    expect(first.parentId).toBe(null);
    expect(second).toMatchObject({ parentId: first.id, nickname: "Ada" });
    const table = await brigHere(["sessions"], { cwd: workspace, env });
    expect(table.stdout).toMatch(/ go\n.* └ Ada: count the files\n$/);
    const resumed = await brigHere(["resume", "--last", "x", "--script", script], { cwd: workspace, env });
    expect(resumed.stderr).toContain(first.id);
  });

  it("prints Codex's items with --json, and each event of an agent in an envelope", async () => {
    const { workspace, env, script } = await place();
    const { stdout, exitCode } = await brigHere(["run", "go", "--json", "--script", script], {
      cwd: workspace,
      env,
    });
    expect(exitCode).toBe(0);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const calls = lines.filter(({ item }) => item?.type === "collab_tool_call").map(({ item }) => item);
    expect(calls.map(({ tool, status }) => [tool, status])).toEqual([
      ["spawn_agent", "in_progress"],
      ["spawn_agent", "completed"],
      ["wait", "in_progress"],
      ["wait", "completed"],
    ]);
    const [id] = calls[1].receiver_thread_ids;
    expect(calls[3].agents_states).toEqual({ [id]: { status: "completed", message: "There are two." } });
    const own = lines.filter(({ type }) => type === "agent.event");
    expect(own.every((line) => line.agent_id === id)).toBe(true);
    expect(own.map(({ event }) => event.type)).toContain("turn.completed");
    expect(lines.filter(({ type }) => type === "turn.completed")).toHaveLength(1);
    expect(lines.filter(({ type }) => type === "thread.started")).toHaveLength(1);
  });

  it("deletes the sessions of agents with the one that started them, once that is agreed to", async () => {
    const { workspace, env, script } = await place();
    for (const prompt of ["one", "two"])
      await brigHere(["run", prompt, "--script", script], { cwd: workspace, env });
    const listed = async (): Promise<{ id: string; prompt: string }[]> =>
      JSON.parse((await brigHere(["sessions", "--json"], { cwd: workspace, env })).stdout);
    const all = await listed();
    expect(all).toHaveLength(4);
    const first = all.find(({ prompt }) => prompt === "one")?.id ?? "";
    const terminal = await Terminal.open(["sessions", "delete", first], { cwd: workspace, env });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    await terminal.waitForScreen(/ one\n[\s\S]*└ Ada: count[\s\S]*Delete these 2\? \[y\/N\]/);
    terminal.type("y\r");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.shown).toMatch(/deleted \S+, the session of its agent Ada\r?\n/);
    expect((await listed()).map(({ prompt }) => prompt)).toEqual(["two", "count the files"]);
  });

  it("leaves nothing when it is interrupted while an agent works", async () => {
    const { workspace, env, script } = await place({
      ...counting,
      agents: [
        { steps: [{ calls: [{ exec_command: { cmd: "touch started; sleep 600" } }] }, { text: "x" }] },
      ],
    });
    const run = brig(["run", "go", "--script", script], { cwd: workspace, env });
    run.stderr?.on("data", (chunk) => {
      if (String(chunk).includes("[Ada (explorer)] $")) run.kill("SIGINT");
    });
    const { exitCode } = await run;
    expect(exitCode).toBe(130);
    expect(await containersOf(run.pid)).toEqual([]);
  });

  it("says with which setting they are off", async () => {
    const { workspace, env } = await place();
    const rows = async (...args: string[]) => {
      const { stdout } = await brigHere(["tools", "--json", ...args], { cwd: workspace, env });
      return JSON.parse(stdout).filter(({ name }: { name: string }) => name === "spawn_agent");
    };
    expect(await rows()).toMatchObject([{ isOn: true, why: "tools.multi_agent = true (default)" }]);
    const [byFeature] = await rows("-c", "features.multi_agent=false");
    expect(byFeature).toMatchObject({ isOn: false, why: expect.stringContaining("-c") });
    const [byDepth] = await rows("-c", "agents.max_depth=0");
    expect(byDepth).toMatchObject({ isOn: false, why: "tools.multi_agent = false (agents.max_depth = 0)" });
  });
});

type Declared = {
  type: string;
  name?: string;
  parameters?: { properties: object; required?: string[] };
  tools?: Declared[];
};

const calls: readonly [string, (id: string) => object][] = [
  ["send_input", (id) => ({ target: id, message: "" })],
  ["send_input", (id) => ({ target: id })],
  ["send_input", (id) => ({ target: id, items: [] })],
  ["send_input", (id) => ({ target: id, message: "a", items: [{ type: "text", text: "b" }] })],
  ["send_input", (id) => ({ target: id, items: [{ type: "bogus" }] })],
  ["send_input", () => ({ target: "00000000-0000-7000-8000-000000000000", message: "a" })],
  ["wait_agent", () => ({ targets: [] })],
  ["wait_agent", () => ({ targets: ["00000000-0000-7000-8000-000000000000"], timeout_ms: 0 })],
  ["wait_agent", () => ({ targets: ["00000000-0000-7000-8000-000000000000"] })],
  ["wait_agent", (id) => ({ targets: [id], timeout_ms: 60_000 })],
  ["resume_agent", () => ({ id: "00000000-0000-7000-8000-000000000000" })],
  ["close_agent", () => ({ target: "00000000-0000-7000-8000-000000000000" })],
  ["close_agent", (id) => ({ target: id })],
];

/** Starts an agent, makes one call after the other, and returns the output of each. */
function player() {
  const seen: {
    declared: Declared[];
    outputs: string[];
    notifications: string[];
    input: Record<string, unknown>[];
  } = {
    declared: [],
    outputs: [],
    notifications: [],
    input: [],
  };
  let step = 0;
  let id = "";
  const answer = ({ body }: ReceivedRequest): object[] => {
    const texts = JSON.stringify(body.input.filter(({ role }) => role === "user"));
    if (texts.includes("THE TASK") && !texts.includes("subagent_notification"))
      return [messageDone("the result")];
    if (step === 0) seen.declared = body.tools as Declared[];
    seen.input = body.input;
    const outputs = body.input
      .filter(({ type }) => type === "function_call_output")
      .map(({ output }) => String(output));
    seen.outputs = outputs;
    seen.notifications = body.input
      .map((item) => JSON.stringify(item))
      .filter((text) => text.includes("subagent_notification"));
    id = /"agent_id":"([^"]+)"/.exec(outputs[0] ?? "")?.[1] ?? id;
    const made = step++ === 0 ? (["spawn_agent", { message: "THE TASK" }] as const) : undefined;
    const [name, args] = made ?? [calls[step - 2]?.[0], calls[step - 2]?.[1](id)];
    if (name === undefined) return [messageDone("Done.")];
    const call = callDone(`call-${step}`, name, args) as { item: object };
    return [{ ...call, item: { ...call.item, namespace: "multi_agent_v1" } }];
  };
  const plain = (text: string) =>
    text
      .replaceAll(id, "ID")
      .replace(/"nickname":"[^"]*"/, '"nickname":"N"')
      // What is wrong with arguments, each says in its own words, except for what is missing.
      .replace(/(?<=^failed to parse function arguments: )(?!missing field).*/s, "WRONG");
  return {
    answer,
    result: () => ({
      ...seen,
      outputs: seen.outputs.map(plain),
      notifications: seen.notifications.map(plain),
    }),
  };
}

describe.skipIf(realCodex === null)(withReason("the tools for agents", whyNoCodex), () => {
  it("are declared in the same namespace as the real Codex's, and answer the same calls in the same words", async () => {
    const { workspace, folder, env } = await place();
    const theirs = player();
    const turns = Array.from({ length: 40 }, () => theirs.answer);
    const directory = join(folder, "codex");
    await mkdir(directory);
    await runRealCodex({ turns, mode: "read-only", workspace, directory, environments: null });
    const ours = player();
    await using server = await startResponsesServer((request) => respond(...ours.answer(request)));
    await writeFile(
      join(env.BRIG_HOME, "config.toml"),
      `model = "gpt-5.6"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\nbase_url = "${server.url}"\n`,
    );
    const { exitCode, stderr } = await brigHere(["run", "go"], { cwd: workspace, env });
    expect(exitCode, stderr).toBe(0);
    const [mine, real] = [ours.result(), theirs.result()];
    expect(mine.outputs).toHaveLength(calls.length + 1);
    expect(mine.outputs).toEqual(real.outputs);
    const text = (notification = "") => JSON.parse(notification).content[0].text;
    expect(mine.notifications.map(text)).toEqual(real.notifications.map(text));
    const namespaceOf = (declared: Declared[]) => declared.find(({ type }) => type === "namespace");
    const parameters = ({ tools = [] }: Declared = { type: "" }) =>
      new Map(tools.map(({ name, parameters: declared }) => [name, declared]));
    const [own, codex] = [namespaceOf(mine.declared), namespaceOf(real.declared)];
    expect(own?.name).toBe(codex?.name);
    expect([...parameters(own).keys()].toSorted()).toEqual([...parameters(codex).keys()].toSorted());
    for (const [name, theirs] of parameters(codex)) {
      const mine = parameters(own).get(name);
      expect(Object.keys(mine?.properties ?? {}), name).toEqual(
        expect.arrayContaining(Object.keys(theirs?.properties ?? {})),
      );
      expect(mine?.required ?? [], name).toEqual(theirs?.required ?? []);
    }
  });
});
