import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { brig } from "../support/cli.js";
import { startMcpServer } from "../support/mcp-server-process.js";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "../support/otlp-receiver.js";
import { startProgram } from "../support/queue-programs.js";
import { hasRedis, RedisServer, whyNoRedis } from "../support/redis-server.js";
import { callDone, messageDone, respond, startResponsesServer, turn } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

let receiver: OtlpReceiver;
let directory: string;

beforeEach(async () => {
  receiver = await startOtlpReceiver();
  const folder = await temporaryDirectory();
  directory = folder.path;
  onTestFinished(async () => {
    await receiver[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
});

const collector = () => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
  OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
});

function named(name: string): ReceivedSpan[] {
  return receiver.spans().filter((span) => span.name === name);
}

function expectNoContent(...texts: string[]): void {
  const sent = receiver.requests.map(({ body }) => body.toString()).join("\n");
  expect(sent).not.toBe("");
  for (const text of texts) expect(sent).not.toContain(text);
}

describe("telemetry of brig run and brig resume", () => {
  const play = async (name: string, steps: object[]) => {
    const file = join(directory, name);
    await writeFile(file, JSON.stringify({ steps }));
    return ["--script", file];
  };
  const env = (more: Record<string, string> = {}) => ({
    ...{ BRIG_HOME: join(directory, "home"), CODEX_HOME: join(directory, "home"), OPENAI_API_KEY: "" },
    ...more,
  });

  it("a resumed session has the turns that it goes on with, under the id that it had", async () => {
    const first = await brig(
      ["run", ...(await play("first", [{ text: "the first answer" }])), "first prompt"],
      {
        ...{ cwd: directory, env: env() },
      },
    );
    expect(first.exitCode, first.stderr).toBe(0);
    expect(receiver.requests).toEqual([]);
    const shell = { calls: [{ shell: { command: ["sh", "-c", "echo of the second"] } }] };
    const again = await play("second", [shell, { text: "the second answer" }]);
    const resumed = await brig(["resume", "--last", ...again, "second prompt"], {
      ...{ cwd: directory, env: env(collector()) },
    });
    expect(resumed.exitCode, resumed.stderr).toBe(0);
    const [file = ""] = (await readdir(join(directory, "home/sessions"), { recursive: true })).filter(
      (name) => name.endsWith(".jsonl"),
    );
    const [begin = ""] = (await readFile(join(directory, "home/sessions", file), "utf8")).split("\n", 1);
    const turns = named("invoke_agent brig");
    expect(turns.map(({ attributes }) => attributes["gen_ai.conversation.id"])).toEqual([
      JSON.parse(begin).payload.id,
    ]);
    expect(named("chat scripted")).toHaveLength(2);
    expect(named("execute_tool shell")[0]?.parentSpanId).toBe(turns[0]?.spanId);
    expectNoContent("first prompt", "first answer", "second prompt", "second answer", "of the second");
  }, 120_000);

  it("a run that SIGTERM ends in the middle of a command has sent its turn by then, as a failure", async () => {
    const sleep = { calls: [{ shell: { command: ["sh", "-c", "echo begun; sleep 600"] } }] };
    const running = brig(["run", ...(await play("sleep", [sleep, { text: "slept" }])), "sleep well"], {
      ...{ cwd: directory, env: env(collector()) },
    });
    let shown = "";
    running.stderr.on("data", (text) => {
      shown += text;
    });
    await expect.poll(() => shown, { timeout: 60_000 }).toContain("begun");
    running.kill("SIGTERM");
    expect((await running).exitCode).toBe(143);
    expect(named("invoke_agent brig")).toMatchObject([{ status: { code: 2 } }]);
    expect(named("execute_tool shell")).toHaveLength(1);
    expectNoContent("sleep well", "begun");
  }, 120_000);
});

it("each turn of the tools of brig mcp-server is a span, and SIGTERM loses none", async () => {
  await using server = await startMcpServer("brig", {
    ...{ directory, isProcess: true, env: collector() },
    replies: ({ body }) => {
      const input = JSON.stringify(body.input);
      return respond(
        input.includes("look around") && !input.includes("function_call_output")
          ? callDone("one", "exec_command", { cmd: "echo of the command" })
          : messageDone("that is the answer"),
      );
    },
  });
  const { client } = server;
  await client.initialize();
  const first = await client.call("codex", { prompt: "look around" }).answer;
  const threadId = first.result?.structuredContent?.threadId;
  expect(first.result?.isError, JSON.stringify(first)).not.toBe(true);
  await client.call("codex-reply", { threadId, prompt: "and once more" }).answer;
  client.kill("SIGTERM");
  await client.exited;
  expect(client.stderr).not.toContain("telemetry");
  const turns = named("invoke_agent brig");
  expect(turns.map(({ attributes }) => attributes["gen_ai.conversation.id"])).toEqual([threadId, threadId]);
  const [call] = named("execute_tool exec_command");
  expect(call?.parentSpanId).toBe(turns[0]?.spanId);
  expect(named("command sh").concat(named("command bash"))[0]?.parentSpanId).toBe(call?.spanId);
  expect(receiver.measurements("brig.sandboxes").map(({ value }) => value)).toEqual([1]);
  expectNoContent("look around", "once more", "of the command", "the answer");
}, 120_000);

// Without redis-server, which npm test installs if it can, there is nothing to test with.
it.skipIf(!hasRedis)(
  withReason(
    "an attempt of brig worker is a span above those of its agent, sent when SIGTERM has drained it",
    whyNoRedis,
  ),
  async () => {
    await using redis = await RedisServer.start();
    const tasks = join(directory, "answer.jsonl");
    const row = { name: "answer", prompt: "Write 42 to answer.txt.", check: "grep -qx 42 answer.txt" };
    await writeFile(tasks, JSON.stringify(row));
    await using server = await startResponsesServer([
      turn({ calls: [{ id: "call-1", name: "shell_command", args: { command: "echo 42 > answer.txt" } }] }),
      turn({ text: "It is written." }),
    ]);
    const config = ["-c", "model_provider=mine", "-c", `model_providers.mine={ base_url = "${server.url}" }`];
    const queue = ["--queue", redis.urlWithPassword, "--results", join(directory, "results")];
    const start = (args: string[], more = {}) =>
      startProgram(args, { cwd: directory, env: { BRIG_HOME: join(directory, "home"), ...more } });
    const worker = start(["worker", ...queue, ...config, "-n", "1"], collector());
    const output = join(directory, "output");
    const batch = start(["batch", tasks, ...config, "-m", "some-model", "-o", output, ...queue]);
    expect(await batch.ended, batch.errors() + worker.errors()).toBe(0);
    worker.child.kill("SIGTERM");
    expect(await worker.ended, worker.errors()).toBe(0);
    expect(worker.errors()).not.toContain("telemetry");
    const [attempt] = named("attempt answer");
    expect(attempt?.attributes).toMatchObject({
      "brig.task.name": "answer",
      "brig.attempt.number": 1,
      "brig.attempt.status": "scored",
    });
    const [run] = named("invoke_agent brig");
    expect(run?.parentSpanId).toBe(attempt?.spanId);
    expect(named("chat some-model").map(({ parentSpanId }) => parentSpanId)).toEqual([
      run?.spanId,
      run?.spanId,
    ]);
    expectNoContent(row.prompt, "It is written", "echo 42");
  },
  240_000,
);
