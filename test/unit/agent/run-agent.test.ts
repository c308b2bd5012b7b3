import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import type { ModelClient, ModelEvent } from "../../../src/agent/model/model-client.js";
import { createResponsesClient } from "../../../src/agent/model/responses/responses-client.js";
import { parseScript } from "../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../src/agent/model/script/scripted-client.js";
import { noCredentials } from "../../../src/agent/model/static-credentials.js";
import { type RunAgentOptions, runAgent } from "../../../src/agent/run-agent.js";
import { openSessionFile } from "../../../src/agent/session/write/session-file.js";
import type { AgentEvent } from "../../../src/agent/turn/events.js";
import { BrigError } from "../../../src/errors.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";
import {
  callDone,
  completed,
  created,
  messageDone,
  type Reply,
  respond,
  startResponsesServer,
} from "../../support/responses-server.js";

const folder = mkdtempSync(join(tmpdir(), "brig-agent-"));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const setting = {
  cwd: folder,
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

async function run(options: Partial<RunAgentOptions> & Pick<RunAgentOptions, "model">) {
  const events: AgentEvent[] = [];
  const sandbox = new MemorySandbox();
  const result = await runAgent({
    prompt: "do it",
    sandbox: () => Promise.resolve(sandbox),
    setting,
    random: () => 0.5,
    ...options,
    onEvent: (event) => {
      events.push(event);
      options.onEvent?.(event);
    },
  });
  return { result, events, sandbox, kinds: events.map(({ kind }) => kind) };
}

function scripted(yaml: string): ModelClient {
  return createScriptedClient(parseScript(yaml, "play.yaml"));
}

function responses(url: string): ModelClient {
  return createResponsesClient({
    provider: {
      id: "local",
      wireApi: "responses",
      baseUrl: url,
      credentials: noCredentials,
      headers: {},
      query: {},
      maxRequestRetries: 0,
      maxStreamRetries: 3,
      streamIdleTimeoutMs: 5000,
    },
    model: "test-model",
    threadId: "t",
  });
}

const exec = (id: string, cmd: string) => callDone(id, "exec_command", { cmd, login: false });

describe("a run", () => {
  it("asks until the model calls no tool, and gives the last text, the calls and their latencies", async () => {
    const { result } = await run({
      model: scripted(`steps:
  - text: I look.
    calls:
      - exec_command: { cmd: "echo one", login: false }
      - exec_command: { cmd: "echo two", login: false }
  - expect:
      - { contains: one, exitCode: 0 }
      - { contains: two }
    calls:
      - shell: { command: ["false"] }
  - expect: { exitCode: 1 }
    text: Done.
`),
    });
    expect(result).toMatchObject({
      status: "completed",
      lastMessage: "Done.",
      toolCalls: 3,
      sessionFile: null,
    });
    expect(result.callLatenciesMs).toHaveLength(3);
    expect(result.error).toBeUndefined();
  });

  it("tells of everything in its order", async () => {
    const { kinds, events } = await run({
      model: scripted(`steps:
  - calls:
      - shell: { command: [echo, hi] }
  - text: Done.
`),
    });
    // The sandbox is ready when it is ready, and a call may end before its response does.
    expect(kinds).toContain("sandbox-ready");
    expect(kinds.filter((kind) => kind === "request-ended")).toHaveLength(2);
    expect(kinds.filter((kind) => kind !== "sandbox-ready" && kind !== "request-ended")).toEqual([
      "session-started",
      "turn-started",
      "request-started",
      "call-started",
      "command-started",
      "command-output",
      "command-ended",
      "call-ended",
      "request-started",
      "text-delta",
      "message",
      "turn-completed",
    ]);
    expect(events.find((event) => event.kind === "command-started")).toMatchObject({ argv: ["echo", "hi"] });
  });

  it("fails with the script's words when an expectation is not met", async () => {
    const { result, kinds } = await run({
      model: scripted(`steps:
  - calls:
      - exec_command: { cmd: "echo one", login: false }
  - expect: { contains: two }
    text: Done.
`),
    });
    expect(result).toMatchObject({ status: "failed", error: { code: "model.script" } });
    expect(result.error?.message).toMatch(/^play\.yaml:4: .*does not contain "two"/);
    expect(kinds.at(-1)).toBe("turn-failed");
  });

  it("keeps a record that has every item, what the sandbox is and what each call cost", async () => {
    const session = await openSessionFile({ home: folder, threadId: "t-1", now: () => new Date() });
    const { result } = await run({
      session,
      threadId: "t-1",
      images: ["data:image/png;base64,AA"],
      model: scripted(`steps:
  - calls:
      - shell: { command: [echo, hi] }
  - text: Done.
`),
    });
    const all = readFileSync(result.sessionFile ?? "", "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    const lines = all.filter(({ type }) => type !== "brig.sandbox");
    expect(lines).toHaveLength(all.length - 1);
    expect(lines.map(({ type, payload }) => `${type} ${payload.type ?? ""}`.trim())).toEqual([
      "session_meta",
      "event_msg task_started",
      "turn_context",
      "response_item message",
      "response_item message",
      "response_item message",
      "event_msg user_message",
      "response_item function_call",
      "brig.call",
      "response_item function_call_output",
      "response_item message",
      "event_msg agent_message",
      "event_msg task_complete",
      "brig.turn",
    ]);
    expect(lines[0].payload).toMatchObject({
      id: "t-1",
      cwd: folder,
      originator: "brig",
      model_provider: "scripted",
    });
    expect(lines[2].payload).toMatchObject({
      cwd: folder,
      approval_policy: "never",
      sandbox_policy: { type: "workspace-write", network_access: false },
    });
    expect(lines[6].payload).toMatchObject({ message: "do it", images: ["data:image/png;base64,AA"] });
    expect(lines[8].payload).toMatchObject({ name: "shell", success: true, duration_ms: expect.any(Number) });
  });
});

describe("the sandbox", () => {
  it("starts while the first request is in flight", async () => {
    const order: string[] = [];
    await using server = await startResponsesServer([
      { kind: "stream", events: [created(), messageDone("hi"), completed()], delayMs: 150 },
    ]);
    const { result } = await run({
      model: responses(server.url),
      sandbox: async () => {
        order.push("sandbox starts");
        await sleep(30);
        return new MemorySandbox();
      },
      onEvent: (event) => {
        if (event.kind === "sandbox-ready" || event.kind === "message") order.push(event.kind);
      },
    });
    expect(order).toEqual(["sandbox starts", "sandbox-ready", "message"]);
    expect(result.sandboxStartMs).toBeGreaterThanOrEqual(29);
  });

  it("that cannot start ends the run at once, while the model is still thinking", async () => {
    await using server = await startResponsesServer([{ kind: "stream", events: [], ending: "hang" }]);
    const unreachable = new BrigError("no engine", { code: "engine.unreachable" });
    const { result } = await run({
      model: responses(server.url),
      sandbox: () => Promise.reject(unreachable),
    });
    expect(result).toMatchObject({ status: "failed", error: unreachable });
  });

  it("that cannot start fails a run that calls no tool as well", async () => {
    const invalid = new BrigError("no such workspace", { code: "workspace.invalid" });
    const { result } = await run({
      model: scripted("steps: [{ text: hi }]"),
      sandbox: () => sleep(50).then(() => Promise.reject(invalid)),
    });
    expect(result).toMatchObject({ status: "failed", error: invalid, lastMessage: "hi" });
  });

  it("is closed when it was opened here, and left alone when it was not", async () => {
    let closed = 0;
    const sandbox = Object.assign(new MemorySandbox(), {
      close: () => {
        closed++;
        return Promise.resolve();
      },
    });
    const script = "steps: [{ text: hi }]";
    await run({ model: scripted(script), sandbox });
    await run({ model: scripted(script), sandbox: Promise.resolve(sandbox) });
    expect(closed).toBe(0);
    await run({ model: scripted(script), sandbox: () => Promise.resolve(sandbox) });
    expect(closed).toBe(1);
  });

  it("that is gone ends the run with its error, and the call still has an output", async () => {
    const gone = new BrigError("killed", { code: "sandbox.gone", reason: "killed" });
    const session = await openSessionFile({ home: folder, threadId: "t-gone", now: () => new Date() });
    const { result } = await run({
      session,
      model: scripted("steps: [{ calls: [{ shell: { command: [ls] } }] }, { text: hi }]"),
      sandbox: () =>
        Promise.resolve(Object.assign(new MemorySandbox(), { spawn: () => Promise.reject(gone) })),
    });
    expect(result).toMatchObject({ status: "failed", error: gone });
    expect(readFileSync(session.path ?? "", "utf8")).toContain(
      '"type":"function_call_output","call_id":"call_1_1","output":"aborted"',
    );
  });

  it("has no process left of a session that was still running at the end", async () => {
    const { sandbox, kinds } = await run({
      model: scripted(`steps:
  - calls:
      - exec_command: { cmd: "sleep 60", login: false, yield_time_ms: 250 }
  - text: Done.
`),
    });
    expect(sandbox.runningCount).toBe(0);
    expect(kinds.slice(-2)).toEqual(["command-ended", "turn-completed"]);
  });
});

describe("a call", () => {
  it("starts while the response goes on", async () => {
    const events: AgentEvent[] = [];
    const model: ModelClient = {
      provider: "test",
      model: "test",
      maxStreamRetries: 0,
      async *stream({ input }): AsyncIterable<ModelEvent> {
        if (!input.some(({ type }) => type === "function_call")) {
          const item = {
            type: "function_call",
            call_id: "a",
            name: "shell",
            arguments: '{"command":["true"]}',
          } as const;
          yield { kind: "item", item };
          while (!events.some(({ kind }) => kind === "call-ended")) await sleep(5);
        }
        yield { kind: "completed", usage: null };
      },
    };
    const { result } = await run({ model, onEvent: (event) => events.push(event) });
    expect(result.status).toBe("completed");
  });

  it("of an unknown tool gets an answer and the run goes on", async () => {
    const { result } = await run({
      model: scripted(`steps:
  - calls: [{ no_such_tool: {} }]
  - expect: { contains: "unsupported call: no_such_tool" }
    text: Done.
`),
    });
    expect(result.status).toBe("completed");
  });

  it.each([
    ["misspelt", "exec_comand: { cmd: ls }", "did you mean exec_command?"],
    ["that takes text", "aply_patch: text", "did you mean apply_patch?"],
  ])("of an unknown tool, of which a script expects nothing, ends the run: %s", async (_, call, hint) => {
    const { result } = await run({
      model: scripted(`steps:
  - calls: [{ ${call} }]
  - text: Done.
`),
    });
    expect(result).toMatchObject({ status: "failed", error: { code: "model.script", hint } });
    expect(result.error?.message).toMatch(/:2: there is no tool "(?:exec_comand|aply_patch)"$/);
  });
});

describe("a response that breaks off", () => {
  async function conversation(replies: readonly Reply[]) {
    await using server = await startResponsesServer(replies);
    const ran = await run({ model: responses(server.url) });
    return { ...ran, requests: server.requests };
  }

  it("is asked for again with what it had completed, calls and their outputs included", async () => {
    const { result, requests, events } = await conversation([
      { kind: "stream", events: [created(), exec("c1", "echo kept")] },
      respond(messageDone("done")),
    ]);
    expect(result).toMatchObject({ status: "completed", lastMessage: "done", toolCalls: 1 });
    expect(requests[1]?.body.input.slice(3)).toMatchObject([
      { type: "function_call", call_id: "c1" },
      { type: "function_call_output", call_id: "c1", output: expect.stringContaining("kept") },
    ]);
    expect(events.find(({ kind }) => kind === "reconnecting")).toMatchObject({
      attempt: 1,
      maxAttempts: 3,
      delayMs: 200,
      reason: "stream closed before response.completed",
    });
  });

  it("is asked for again after the time that a rate limit names", async () => {
    const { result, events } = await conversation([
      { kind: "status", status: 429, headers: { "retry-after-ms": "40" } },
      respond(messageDone("done")),
    ]);
    expect(result.status).toBe("completed");
    expect(events.find(({ kind }) => kind === "reconnecting")).toMatchObject({ delayMs: 40 });
  });

  it("fails the run when it always does", async () => {
    const { result, requests } = await conversation([
      {
        kind: "status",
        status: 429,
        headers: { "retry-after-ms": "1" },
        body: { error: { message: "slow" } },
      },
    ]);
    expect(result).toMatchObject({ status: "failed", error: { code: "model.rate-limit" } });
    expect(requests).toHaveLength(4);
  });

  it("for good ends the calls it had started", async () => {
    const { result, sandbox, requests } = await conversation([
      {
        kind: "stream",
        events: [
          created(),
          exec("c1", "sleep 60"),
          { type: "response.failed", response: { error: { code: "insufficient_quota", message: "pay" } } },
        ],
      },
    ]);
    expect(result).toMatchObject({ status: "failed", error: { message: "pay" } });
    expect(requests).toHaveLength(1);
    expect(sandbox.runningCount).toBe(0);
  });
});

describe("the next request", () => {
  it("has the outputs in the order of the calls, and no ids", async () => {
    await using server = await startResponsesServer([
      respond(exec("slow", "sleep 0.4; echo slow"), exec("fast", "echo fast")),
      respond(messageDone("done")),
    ]);
    const { result } = await run({ model: responses(server.url) });
    expect(result.usage).toEqual({
      inputTokens: 200,
      cachedInputTokens: 80,
      outputTokens: 40,
      reasoningOutputTokens: 10,
    });
    const input = server.requests[1]?.body.input ?? [];
    expect(input.slice(3).map(({ type, call_id }) => `${type} ${call_id}`)).toEqual([
      "function_call slow",
      "function_call fast",
      "function_call_output slow",
      "function_call_output fast",
    ]);
    expect(input.some((item) => "id" in item)).toBe(false);
    expect(server.requests[0]?.body.tools).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ name: "exec_command" }),
        expect.objectContaining({ name: "write_stdin" }),
      ]),
    );
  });
});

describe("an interruption", () => {
  it("ends the running calls, gives each its output, and tells the model of it in the record", async () => {
    const stop = new AbortController();
    const session = await openSessionFile({ home: folder, threadId: "t-stop", now: () => new Date() });
    const { result, kinds, sandbox } = await run({
      session,
      signal: stop.signal,
      model: scripted(`steps:
  - calls:
      - shell: { command: [sleep, "60"] }
      - exec_command: { cmd: "echo never" }
  - text: Done.
`),
      onEvent: (event) => {
        if (event.kind === "command-started") setTimeout(() => stop.abort(), 100);
      },
    });
    expect(result).toMatchObject({ status: "interrupted", toolCalls: 2 });
    expect(result.error).toBeUndefined();
    expect(kinds.at(-1)).toBe("turn-interrupted");
    expect(sandbox.runningCount).toBe(0);
    const record = readFileSync(session.path ?? "", "utf8");
    expect(record).toMatch(/"call_id":"call_1_1","output":"Wall time: \d+\.\d seconds\\naborted by user"/);
    expect(record).toMatch(/"call_id":"call_1_2","output":"aborted by user after \d+\.\ds"/);
    expect(record).toContain("<turn_aborted>");
    expect(record).toContain('"type":"turn_aborted"');
  });

  it("ends a request that is in flight", async () => {
    await using server = await startResponsesServer([{ kind: "stream", events: [], ending: "hang" }]);
    const { result } = await run({ model: responses(server.url), signal: AbortSignal.timeout(150) });
    expect(result.status).toBe("interrupted");
  });
});

it("a fault of brig's own is thrown, and the sandbox is closed all the same", async () => {
  let isClosed = false;
  const sandbox = Object.assign(new MemorySandbox(), {
    close: () => {
      isClosed = true;
      return Promise.resolve();
    },
  });
  const model: ModelClient = {
    provider: "test",
    model: "test",
    maxStreamRetries: 0,
    // biome-ignore lint/correctness/useYield: it fails before it has anything to say
    async *stream() {
      throw new TypeError("oops");
    },
  };
  await expect(run({ model, sandbox: () => Promise.resolve(sandbox) })).rejects.toThrow("oops");
  expect(isClosed).toBe(true);
});
