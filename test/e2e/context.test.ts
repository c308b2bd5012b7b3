import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
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
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

let folder: TemporaryDirectory;
let workspace = "";
let home = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  workspace = join(folder.path, "project");
  home = join(folder.path, "home");
  await mkdir(workspace);
  await mkdir(home);
  await writeFile(join(workspace, "AGENTS.md"), "Use tabs.\n");
  await writeFile(join(workspace, "GUIDE.md"), "A guide.\n");
  await writeFile(join(home, "AGENTS.md"), "Be brief.\n");
});

afterAll(() => folder[Symbol.asyncDispose]());

async function run(replies: readonly Reply[], args: string[] = [], command: readonly string[] = ["run"]) {
  await using server = await startResponsesServer(replies);
  const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];
  const done = await brigHere([...command, ...onRuntime, ...args, "do it"], {
    cwd: workspace,
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "key", OPENAI_BASE_URL: server.url },
  });
  const { requests } = server;
  return { done, requests, input: requests.map(({ body }) => JSON.stringify(body.input)) };
}

const ok = respond(messageDone("ok"));
const set = (...assignments: string[]) => assignments.flatMap((assignment) => ["-c", assignment]);

describe("what brig run tells the model", () => {
  it("has the user's own AGENTS.md and the workspace's, and the developer's instructions", async () => {
    const { done, requests } = await run([ok], set('developer_instructions="Be kind."'));
    expect(done.exitCode).toBe(0);
    const [developer, user, prompt] = requests[0]?.body.input ?? [];
    expect(developer).toMatchObject({
      role: "developer",
      content: [{ text: expect.stringMatching(/^<permissions instructions>/) }, { text: "Be kind." }],
    });
    expect(user).toMatchObject({
      role: "user",
      content: [
        {
          text:
            `# AGENTS.md instructions for ${workspace}\n\n<INSTRUCTIONS>\n` +
            "Be brief.\n\n--- project-doc ---\n\nUse tabs.\n\n</INSTRUCTIONS>",
        },
        { text: expect.stringMatching(/<sandbox_mode>workspace-write<\/sandbox_mode>/) },
      ],
    });
    expect(prompt).toMatchObject({ role: "user", content: [{ text: "do it" }] });
  });

  it("leaves out what the configuration leaves out", async () => {
    const { requests } = await run(
      [ok],
      set(
        "include_environment_context=false",
        "include_permissions_instructions=false",
        "project_doc_max_bytes=0",
      ),
    );
    expect(requests[0]?.body.input).toMatchObject([
      { role: "user", content: [{ text: expect.stringContaining("Be brief.\n</INSTRUCTIONS>") }] },
      { role: "user", content: [{ text: "do it" }] },
    ]);
  });

  it("says on stderr what of a file it could not take", async () => {
    const { done, input } = await run([ok], set("project_doc_max_bytes=4"));
    expect(input[0]).toContain("--- project-doc ---\\n\\nUse \\n</INSTRUCTIONS>");
    expect(done.stderr).toContain("AGENTS.md is cut after 4 bytes: project_doc_max_bytes is 4");
  });

  it("begins with the base instructions of a file, the flag's before the configuration's", async () => {
    await writeFile(join(home, "own.md"), "I am configured.\n");
    await writeFile(join(workspace, "flag.md"), "I am a flag.\n");
    const configured = set(`model_instructions_file=${JSON.stringify(join(home, "own.md"))}`);
    const first = await run([ok], configured);
    expect(first.requests[0]?.body.instructions).toBe("I am configured.\n");
    const second = await run([ok], [...configured, "--instructions-file", "flag.md"]);
    expect(second.requests[0]?.body.instructions).toBe("I am a flag.\n");
  });

  it("goes on with the base instructions that the session began with, unless a flag says otherwise", async () => {
    await writeFile(join(workspace, "first.md"), "I was first.\n");
    await writeFile(join(workspace, "other.md"), "I am another.\n");
    await run([ok], ["--instructions-file", "first.md"]);
    const configured = set(`model_instructions_file=${JSON.stringify(join(workspace, "other.md"))}`);
    const resumed = await run([ok], ["--last", ...configured], ["resume"]);
    expect(resumed.requests[0]?.body.instructions).toBe("I was first.\n");
    const flagged = await run([ok], ["--last", "--instructions-file", "other.md"], ["resume"]);
    expect(flagged.requests[0]?.body.instructions).toBe("I am another.\n");
  });

  it("is nothing where that file is of no use: exit status 2, and no request", async () => {
    const { done, requests } = await run([ok], ["--instructions-file", "missing.md"]);
    expect(done.exitCode).toBe(2);
    expect(done.stderr).toContain(`the instructions file ${join(workspace, "missing.md")} does not exist`);
    expect(requests).toEqual([]);
  });
});

describe("a run that fills the window", () => {
  const usage = { input_tokens: 900, output_tokens: 100, total_tokens: 1000 };
  const full: Reply = {
    kind: "stream",
    events: [created(), callDone("c1", "shell", { command: ["echo", "hi"] }), completed(usage)],
  };

  it("is summed up in the configured words and goes on", async () => {
    const replies = [full, respond(messageDone("All is well.")), respond(messageDone("Done."))];
    const options = set("model_auto_compact_token_limit=1000", 'compact_prompt="Sum it up."');
    const { done, requests, input } = await run(replies, options);
    expect(done.stdout).toBe("Done.\n");
    expect(requests[1]?.body.tools).toEqual([]);
    expect(input[1]).toMatch(/"Sum it up\."\}\]\}\]$/);
    expect(input[2]).not.toContain("function_call");
    expect(input[2]).toContain("All is well.");
    expect(input[2]).toContain("Use tabs.");
    expect(done.stderr).toContain("the conversation was summed up");
    const file = /^session file (\/.*)$/m.exec(done.stderr)?.[1] ?? "";
    expect(await readFile(file, "utf8")).toContain('"type":"compacted"');
  });

  it("is resumed from the summary, and the model is told only what has changed", async () => {
    const replies = [full, respond(messageDone("All is well.")), respond(messageDone("Done."))];
    const before = await run(replies, set("model_auto_compact_token_limit=1000"));
    expect(before.done.exitCode).toBe(0);
    const resumed = await run([ok], ["--sandbox", "read-only"], ["resume", "--last"]);
    expect(resumed.done.exitCode).toBe(0);
    const [last] = before.requests.slice(-1);
    const input = resumed.requests[0]?.body.input ?? [];
    expect(resumed.requests[0]?.body.instructions).toBe(last?.body.instructions);
    expect(input.slice(0, 5)).toEqual([
      ...(last?.body.input ?? []),
      expect.objectContaining({ role: "assistant" }),
    ]);
    expect(input.slice(5)).toMatchObject([
      { role: "developer", content: [{ text: expect.stringContaining("`sandbox_mode` is `read-only`") }] },
      {
        role: "user",
        content: [
          {
            text:
              "<environment_context>\n  <sandbox_mode>read-only</sandbox_mode>\n" +
              "  <writable_roots />\n</environment_context>",
          },
        ],
      },
      { role: "user", content: [{ text: "do it" }] },
    ]);
  });
});
