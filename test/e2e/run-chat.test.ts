import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { BrigOptions } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import {
  chatDelta,
  chatDone,
  chatFinish,
  type Reply,
  startResponsesServer,
  turn,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const onRuntime = testRuntime === undefined ? [] : ["--runtime", testRuntime];
const key = "chat-key-0123456789";

let folder: TemporaryDirectory;
let home = "";

beforeAll(async () => {
  folder = await temporaryDirectory();
  home = join(folder.path, "home");
  await mkdir(home);
});

afterAll(() => folder[Symbol.asyncDispose]());

/** A fresh copy of the project with the failing test. */
async function project(name: string): Promise<string> {
  const workspace = join(folder.path, name);
  await cp(join(root, "examples/fix-failing-test/project"), workspace, { recursive: true });
  return workspace;
}

/** Asks an endpoint that speaks Chat Completions, and is configured by flags alone. */
async function runChat(
  replies: readonly Reply[],
  { args = [], cwd, env }: BrigOptions & { args?: string[]; cwd: string },
) {
  await using server = await startResponsesServer(replies);
  const settings = [
    "model_provider=mine",
    `model_providers.mine={ base_url = "${server.url}", wire_api = "chat", env_key = "MINE_KEY", request_max_retries = 1 }`,
  ];
  const done = await brigHere(
    ["run", ...onRuntime, ...settings.flatMap((setting) => ["-c", setting]), "-m", "llama-4", ...args],
    { cwd, env: { BRIG_HOME: home, CODEX_HOME: home, MINE_KEY: key, ...env } },
  );
  return { done, requests: server.requests };
}

const patch = `*** Begin Patch
*** Update File: src/money.js
@@
   const shares = weights.map((weight) => Math.trunc((cents * weight) / totalWeight));
+  const cent = Math.sign(cents);
   let left = cents - sum(shares);
-  for (let index = 0; left > 0; index++) {
-    shares[index] += 1;
-    left -= 1;
+  for (let index = 0; left !== 0; index++) {
+    shares[index] += cent;
+    left -= cent;
   }
*** End Patch
`;

/** The outputs of the calls before, by their ids, as the last request gives them. */
function outputsIn(body: { messages: Record<string, unknown>[] } | undefined): Map<unknown, string> {
  const outputs = body?.messages.filter(({ role }) => role === "tool") ?? [];
  return new Map(outputs.map(({ tool_call_id, content }) => [tool_call_id, String(content)]));
}

describe("brig run over Chat Completions", () => {
  it("does a whole task: looks, reads, patches and tests", async () => {
    const cwd = await project("task");
    const file = join(cwd, "src/money.js");
    const { done, requests } = await runChat(
      [
        turn({
          text: "I look.",
          calls: [
            { id: "look", name: "read_file", args: { file_path: file, limit: 3 } },
            { id: "test-before", name: "exec_command", args: { cmd: "node --test" } },
          ],
        }),
        turn({ calls: [{ id: "fix", name: "apply_patch", args: { input: patch } }] }, { pieceBytes: 11 }),
        turn({ calls: [{ id: "test-after", name: "exec_command", args: { cmd: "node --test" } }] }),
        turn({ reasoning: "That was it.", text: "All tests pass now." }),
      ],
      { cwd, args: ["Fix the test."] },
    );
    expect(done.stderr).toContain("4 tool calls");
    expect(done.stdout).toBe("All tests pass now.\n");
    expect(done.exitCode).toBe(0);
    expect(await readFile(file, "utf8")).toContain("left !== 0");

    const [first] = requests;
    const last = requests.at(-1);
    expect(requests.map(({ url }) => url)).toEqual(Array(4).fill("/v1/chat/completions"));
    expect(first?.headers.authorization).toBe(`Bearer ${key}`);
    const tools = first?.body.tools as { type: string; function: { name: string; parameters: object } }[];
    expect(new Set(tools.map(({ type }) => type))).toEqual(new Set(["function"]));
    const names = tools.map((tool) => tool.function.name);
    expect(names).toEqual(expect.arrayContaining(["exec_command", "read_file", "apply_patch"]));
    expect(names).not.toContain("web_search");
    expect(first?.body.messages.map(({ role }) => role)[0]).toBe("system");
    expect(first?.body.messages.at(-1)).toEqual({ role: "user", content: "Fix the test." });
    expect(last?.body.messages.slice(-8).map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "tool",
      "assistant",
      "tool",
      "assistant",
      "tool",
    ]);
    const outputs = outputsIn(last?.body);
    expect(outputs.get("look")).toContain("L1: ");
    expect(outputs.get("test-before")).toContain("fail 1");
    expect(outputs.get("fix")).toContain("M src/money.js");
    expect(outputs.get("test-after")).toContain("fail 0");
  });

  it("shows the model a picture that a tool gave, as the user's", async () => {
    const cwd = await project("picture");
    const gif = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");
    await writeFile(join(cwd, "dot.gif"), gif);
    const { done, requests } = await runChat(
      [
        turn({ calls: [{ id: "see", name: "view_image", args: { path: join(cwd, "dot.gif") } }] }),
        turn({ text: "A dot." }),
      ],
      { cwd, args: ["What is it?"] },
    );
    expect(done.stdout).toBe("A dot.\n");
    const [call, output, picture] = requests[1]?.body.messages.slice(-3) ?? [];
    expect(call).toMatchObject({ role: "assistant", content: null });
    expect(output).toMatchObject({ role: "tool", tool_call_id: "see" });
    const url = expect.stringMatching(/^data:image\//);
    expect(picture).toMatchObject({
      role: "user",
      content: [{ type: "text" }, { type: "image_url", image_url: { url } }],
    });
  });

  it("runs a call once though its stream breaks, and goes on", async () => {
    const cwd = await project("broken");
    const call = { id: "once", name: "exec_command", args: { cmd: "echo ran >> runs.txt; cat runs.txt" } };
    const { done, requests } = await runChat(
      [
        turn({ calls: [call] }, { cutAfterBytes: 700 }),
        { kind: "status", status: 503, headers: { "retry-after-ms": "10" } },
        turn({ calls: [call] }),
        { kind: "status", status: 429, headers: { "retry-after-ms": "10" } },
        turn({ text: "It ran." }),
      ],
      { cwd, args: ["Run it."] },
    );
    expect(done.stdout).toBe("It ran.\n");
    expect(await readFile(join(cwd, "runs.txt"), "utf8")).toBe("ran\n");
    expect(requests).toHaveLength(5);
  });

  it.each<[string, Reply, string, number]>([
    [
      "an answer that the endpoint cuts short",
      { kind: "stream", events: [chatDelta({ content: "h" }), chatFinish("length"), chatDone] },
      "Incomplete response returned, reason: length",
      1,
    ],
    [
      "a spent quota",
      { kind: "status", status: 429, body: { error: { code: "insufficient_quota", message: "pay first" } } },
      "pay first",
      1,
    ],
    [
      "a wrong key, which it does not show",
      { kind: "status", status: 401, body: { error: { message: `no such key: ${key}` } } },
      "no such key: ***",
      2,
    ],
  ])("fails in words on %s", async (_, reply, message, exitCode) => {
    const { done } = await runChat([reply], { cwd: await project("failing"), args: ["go"] });
    expect(done.stderr).toContain(message);
    expect(done.stderr).not.toContain(key);
    expect(done.stdout).toBe("");
    expect(done.exitCode).toBe(exitCode);
  });

  it("is what brig tools knows as well", async () => {
    const done = await brigHere(["tools", "-c", "model_provider=ollama", "-c", "web_search=live"], {
      env: { BRIG_HOME: home, CODEX_HOME: home },
    });
    expect(done.stdout).toMatch(/^apply_patch +on .*tools\.apply_patch = function/m);
    expect(done.stdout).toMatch(/^web_search +off .*tools\.web_search = disabled \(wire_api = "chat"\)/m);
  });
});
