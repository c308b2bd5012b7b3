import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Codex, type CodexOptions, type ThreadEvent, type ThreadOptions } from "@openai/codex-sdk";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import {
  callDone,
  messageDone,
  type ReceivedRequest,
  type Reply,
  respond,
  startResponsesServer,
} from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { gif } from "../unit/tools/picture/pictures.js";

/** As a package installs it: a program that the SDK starts by its path. */
const brigCodex = fileURLToPath(new URL("../../dist/cli/codex.js", import.meta.url));

let workspace: string;
let home: string;

beforeEach(async () => {
  const [work, own] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  onTestFinished(() =>
    Promise.all([work[Symbol.asyncDispose](), own[Symbol.asyncDispose]()]).then(() => undefined),
  );
  workspace = work.path;
  home = own.path;
});

function runs(command: string, id = "call-1"): object {
  return callDone(id, "exec_command", { cmd: command });
}

/** The official SDK, with brig where it looks for Codex, asking an endpoint on loopback. */
async function withSdk<T>(
  replies: readonly Reply[] | ((request: ReceivedRequest) => Reply),
  use: (codex: Codex, requests: ReceivedRequest[]) => Promise<T>,
  options: CodexOptions = {},
): Promise<T> {
  await using server = await startResponsesServer(replies);
  const codex = new Codex({
    codexPathOverride: brigCodex,
    baseUrl: server.url,
    apiKey: "sdk-key-0123456789",
    env: { PATH: process.env.PATH ?? "", HOME: home, BRIG_HOME: home, CODEX_HOME: home },
    ...(testRuntime === undefined ? {} : { config: { runtime: testRuntime } }),
    ...options,
  });
  return await use(codex, server.requests);
}

function threadOptions(more: ThreadOptions = {}): ThreadOptions {
  return { workingDirectory: workspace, skipGitRepoCheck: true, model: "gpt-5-test", ...more };
}

async function collect(events: AsyncIterable<ThreadEvent>): Promise<ThreadEvent[]> {
  const collected: ThreadEvent[] = [];
  for await (const event of events) collected.push(event);
  return collected;
}

describe("the official Codex SDK on brig-codex", () => {
  it("runs a turn whose command runs in the container", async () => {
    const replies = [
      respond(runs("cat /proc/1/comm; echo made > made.txt")),
      respond(messageDone("It is made.")),
    ];
    await withSdk(replies, async (codex, requests) => {
      const turn = await codex.startThread(threadOptions({ sandboxMode: "workspace-write" })).run("make it");
      expect(turn.finalResponse).toBe("It is made.");
      expect(turn.items).toMatchObject([
        { type: "command_execution", status: "completed", exit_code: 0, aggregated_output: "runner\n" },
        { type: "agent_message", text: "It is made." },
      ]);
      expect(turn.usage).toMatchObject({
        input_tokens: expect.any(Number),
        cached_input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
      });
      expect(requests[0]?.headers).toMatchObject({
        authorization: "Bearer sdk-key-0123456789",
        originator: "codex_sdk_ts",
      });
    });
  });

  it("reads only, where it names no sandbox", async () => {
    const replies = [respond(runs("echo x > made.txt; echo $?")), respond(messageDone("Done."))];
    await withSdk(replies, async (codex) => {
      const turn = await codex.startThread(threadOptions()).run("try to write");
      expect(turn.items[0]).toMatchObject({
        type: "command_execution",
        aggregated_output: expect.stringContaining("Read-only file system"),
      });
    });
  });

  it("streams the events of a turn in Codex's order", async () => {
    const replies = [respond(runs("echo hello")), respond(messageDone("Done."))];
    await withSdk(replies, async (codex) => {
      const thread = codex.startThread(threadOptions());
      const { events } = await thread.runStreamed("say hello");
      const collected = await collect(events);
      expect(collected.map(({ type }) => type)).toEqual([
        "thread.started",
        "turn.started",
        "item.started",
        "item.completed",
        "item.completed",
        "turn.completed",
      ]);
      expect(collected[0]).toEqual({ type: "thread.started", thread_id: thread.id });
    });
  });

  it("goes on with a thread by its id, with all that was said", async () => {
    await withSdk(
      [respond(messageDone("Seven.")), respond(messageDone("Eight."))],
      async (codex, requests) => {
        const first = codex.startThread(threadOptions());
        await first.run("what is 3 + 4?");
        const again = codex.resumeThread(first.id ?? "", threadOptions());
        const turn = await again.run("and one more?");
        expect(turn.finalResponse).toBe("Eight.");
        expect(again.id).toBe(first.id);
        expect(JSON.stringify(requests[1]?.body.input)).toContain("what is 3 + 4?");
      },
    );
  });

  it("hands on an output schema and pictures", async () => {
    const picture = join(workspace, "dot.gif");
    await writeFile(picture, gif(3, 4));
    const outputSchema = {
      type: "object",
      properties: { colour: { type: "string" } },
      required: ["colour"],
      additionalProperties: false,
    };
    await withSdk([respond(messageDone('{"colour":"red"}'))], async (codex, requests) => {
      const turn = await codex.startThread(threadOptions()).run(
        [
          { type: "text", text: "What colour is it?" },
          { type: "local_image", path: picture },
        ],
        { outputSchema },
      );
      expect(JSON.parse(turn.finalResponse)).toEqual({ colour: "red" });
      const { body } = requests[0] as ReceivedRequest;
      expect(body.text).toMatchObject({ format: { type: "json_schema", schema: outputSchema } });
      expect(JSON.stringify(body.input)).toContain("data:image/");
    });
  });

  it("is ended by an abort", async () => {
    const controller = new AbortController();
    await withSdk([respond(runs("echo started; sleep 300"))], async (codex) => {
      const thread = codex.startThread(threadOptions({ sandboxMode: "workspace-write" }));
      const { events } = await thread.runStreamed("wait", { signal: controller.signal });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const event of events) {
          seen.push(event.type);
          if (event.type === "item.started") controller.abort();
        }
      })();
      await expect(reading).rejects.toMatchObject({ name: "AbortError" });
      expect(seen).toContain("item.started");
    });
  });

  it("fails a turn that the endpoint refuses, in the endpoint's words", async () => {
    const refused: Reply = { kind: "status", status: 400, body: { error: { message: "no such model" } } };
    await withSdk([refused], async (codex) => {
      await expect(codex.startThread(threadOptions()).run("go")).rejects.toThrow(/no such model/);
    });
  });
});
