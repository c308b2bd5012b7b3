import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { runAction } from "../support/composite-action.js";
import { callDone, messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const KEY = "key-of-the-repository-0123456789";

let place = "";
let workspace = "";
let asked: string[] = [];
let permission: object = {};

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  place = directory.path;
  workspace = join(place, "project");
  await mkdir(join(place, "cache"), { recursive: true });
  await mkdir(workspace);
  [asked, permission] = [[], { permission: "write" }];
});

/** What GitHub says of people. */
async function github() {
  const server = createServer((request, response) => {
    asked.push(`${request.url} ${request.headers.authorization}`);
    response.end(JSON.stringify(permission));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let jobs = 0;

/** A job of somebody in which this checkout is the action, and is what is installed. */
async function job(inputs: Record<string, string>, env: Record<string, string> = {}) {
  return await runAction({
    ...{ action: root, directory: join(place, `job-${jobs++}`), workspace, cache: join(place, "cache") },
    inputs: { package: root, cache: "false", ...inputs },
    env: {
      ...{ GITHUB_API_URL: await github(), GITHUB_REPOSITORY: "them/project", GITHUB_ACTOR: "anna" },
      ...{ BRIG_HOME: join(place, "home"), CODEX_HOME: join(place, "codex"), OPENAI_API_KEY: "" },
      ...env,
    },
  });
}

async function model(command: string, says = "All is well.") {
  const server = await startResponsesServer([
    respond(callDone("one", "exec_command", { cmd: command })),
    respond(messageDone(says)),
  ]);
  onTestFinished(() => server[Symbol.asyncDispose]());
  return { ...server, endpoint: `${server.url}/responses` };
}

const noKeyIn = async (directory: string) => {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const text = await readFile(join(entry.parentPath, entry.name), "utf8");
    expect(text, entry.name).not.toContain(KEY);
  }
};

describe("the action of GitHub", () => {
  it("gives a task to a model with the inputs of openai/codex-action, and reports message, network and receipt", async () => {
    const command =
      "env; cat /proc/*/environ; curl -s http://a.example; mkdir .vscode; echo {} > .vscode/tasks.json";
    const says = "Fine.\n````\n::error::x\n</details>";
    const { endpoint, requests } = await model(command, says);
    const { ran, failed, log, outputs, summary } = await job({
      ...{
        prompt: 'Look at $(touch injected) `touch injected`; it\'s "quoted"',
        model: "gpt-5.6",
        effort: "low",
      },
      ...{ "openai-api-key": KEY, "responses-api-endpoint": endpoint, "output-file": "answer.md" },
      ...{
        sandbox: "workspace-write",
        network: "allowlist:b.example",
        "codex-version": "1",
        "codex-user": "x",
      },
      ...{ "safety-strategy": "drop-sudo", "codex-args": `["-c","project_doc_max_bytes=0"]` },
      "output-schema":
        '{ "type": "object", "additionalProperties": false, "properties": {}, "required": [] }',
    });
    expect(failed, log).toBeNull();
    expect(ran).toEqual([
      ...["Set up Node", "Check who has started the job", "Install brig", "Prepare the images", "Run"],
    ]);
    expect(asked).toEqual(["/repos/them/project/collaborators/anna/permission Bearer token-of-the-job"]);
    expect(outputs["final-message"]).toBe(says);
    expect(await readFile(join(workspace, "answer.md"), "utf8")).toBe(says);
    expect(JSON.parse(outputs.receipt ?? "").findings[0].path).toBe(join(workspace, ".vscode/tasks.json"));
    const [first, second] = requests;
    expect(first?.headers.authorization).toBe(`Bearer ${KEY}`);
    expect(first?.body).toMatchObject({
      model: "gpt-5.6",
      reasoning: { effort: "low" },
      text: { format: { strict: true } },
    });
    expect(JSON.stringify(first?.body.input)).toContain("$(touch injected) `touch injected`; it's");
    const seen = JSON.stringify(second?.body.input);
    expect(seen).toContain("a.example");
    expect(seen).not.toContain(KEY);
    expect(summary).toContain("## brig: done");
    expect(summary).toMatch(/`````text\nFine\./);
    expect(summary).toContain("a&#46;example&#58;80");
    expect(summary).toContain("tasks&#46;json");
    expect(log + summary).not.toContain(KEY);
    expect(await readdir(workspace)).not.toContain("injected");
    await noKeyIn(place);
    expectNoCommands(log);
  });

  it("runs a command, for which the key is put in by the proxy", async () => {
    const command =
      'echo "one $OPENAI_API_KEY"; echo ::error::no; touch made; curl -s http://a.example >/dev/null';
    const { failed, log, outputs, summary } = await job({ command, "openai-api-key": KEY });
    expect(failed, log).toBeNull();
    expect(outputs["final-message"]).toMatch(/^one \S{8,}\n::error::no$/m);
    expect(outputs["final-message"]).not.toContain(KEY);
    expect(log).not.toContain(KEY);
    expectNoCommands(log);
    expect(summary).toContain("a&#46;example&#58;80");
    expect(summary).toContain("Nothing was left");
    expect(await readdir(workspace)).toContain("made");
  });

  it("fails with the command, and without one only prepares", async () => {
    const { failed, summary } = await job({ command: "echo on; exit 3", sandbox: "read-only" });
    expect(failed).toBe("Run");
    expect(summary).toContain("ended with exit status 3");
    const { ran, failed: none } = await job({});
    expect([ran.includes("Run"), none]).toEqual([false, null]);
  });

  it.each([
    [{ prompt: "a", "prompt-file": "b" }, "prompt and prompt-file are both given"],
    [{ prompt: "a", command: "b" }, "command is given, and prompt"],
    [{ prompt: "a", sandbox: "read-only", "permission-profile": ":workspace" }, "both given"],
    [{ prompt: "a", "permission-profile": "mine" }, "permission-profile is none of"],
    [{ prompt: "a", "safety-strategy": "trust" }, "safety-strategy is none of"],
    [{ prompt: "a", "codex-args": "-c 'x" }, "a quote that does not end"],
  ])("refuses %j", async (inputs, reason) => {
    const { failed, log } = await job(inputs);
    expect(failed).toBe("Run");
    expect(log).toContain(reason);
  });

  it("reads the task from a file, and words as a shell writes them", async () => {
    await writeFile(join(workspace, "task.md"), "the task of the file");
    const { endpoint, requests } = await model("touch made; true");
    const { failed, log } = await job({
      ...{ "prompt-file": "task.md", "openai-api-key": KEY, "responses-api-endpoint": endpoint },
      ...{
        "safety-strategy": "read-only",
        "codex-args": `-m 'of args' -c model_reasoning_effort=\\"high\\"`,
      },
    });
    expect(failed, log).toBeNull();
    expect(requests[0]?.body).toMatchObject({ model: "of args", reasoning: { effort: "high" } });
    expect(JSON.stringify(requests[0]?.body.input)).toContain("the task of the file");
    expect(await readdir(workspace)).not.toContain("made");
  });

  it("writes through no link that a command has made", async () => {
    const outside = join(place, "outside");
    await writeFile(outside, "theirs");
    const { failed } = await job({
      command: `ln -s ${outside} answer.md; echo x`,
      "output-file": "answer.md",
    });
    expect(failed).toBe("Run");
    expect(await readFile(outside, "utf8")).toBe("theirs");
    await symlink(outside, join(workspace, "there.md"));
    expect((await job({ command: "echo x", "output-file": "there.md" })).failed).toBe("Run");
    expect(await readFile(outside, "utf8")).toBe("theirs");
  });

  it.each([
    ["anna", { permission: "read" }, {}, false],
    ["anna", { permission: "read" }, { "allow-users": "bob, Anna" }, true],
    ["anna", {}, { "allow-users": "*" }, true],
    ["github-actions[bot]", { permission: "write" }, {}, false],
    ["github-actions[bot]", {}, { "allow-bots": "true" }, true],
    ["other[bot]", {}, { "allow-bots": "true" }, false],
    ["other[bot]", {}, { "allow-bot-users": "other" }, true],
  ])("started by %s, of whom GitHub says %j, with %j: %s", async (actor, says, inputs, mayRun) => {
    permission = says;
    const { failed } = await job(inputs, { GITHUB_ACTOR: actor });
    expect(failed).toBe(mayRun ? null : "Check who has started the job");
  });
});

/** Between the two commands that stop and start them, the runner obeys none. */
function expectNoCommands(log: string): void {
  const rest = log.replace(/^::stop-commands::(\S+)$[\s\S]*?^::\1::$/gm, "");
  expect(rest).not.toMatch(/^\s*::/m);
}

it("the action keeps the images between jobs", { timeout: 600_000 }, async () => {
  const first = await job({ cache: "true" });
  expect(first.failed, first.log).toBeNull();
  const [kept, ...more] = await readdir(join(place, "cache"));
  expect([kept?.startsWith("brig-images-Linux-X64-"), more]).toEqual([true, []]);
  const second = await job({ cache: "true" });
  expect(second.failed, second.log).toBeNull();
  expect(second.log).toContain("Loaded image: brig/base:");
});
