import { context, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { openConversation } from "../../../../src/agent/conversation.js";
import type { ModelClient, ModelEvent } from "../../../../src/agent/model/model-client.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../src/agent/model/script/scripted-client.js";
import { type RunAgentOptions, runAgent } from "../../../../src/agent/run-agent.js";
import { inSpan } from "../../../../src/agent/telemetry/conversation-telemetry.js";
import { BrigError } from "../../../../src/errors.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";
import { inOrder, openPlayed, waitForIt } from "../../../support/played-agents.js";

const exporter = new InMemorySpanExporter();

/** What a program does that uses OpenTelemetry. */
beforeEach(() => {
  exporter.reset();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
  onTestFinished(() => {
    trace.disable();
    context.disable();
  });
});

const setting = {
  cwd: "/workspace",
  sandboxMode: "workspace-write",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

const optionsFor = (model: ModelClient): RunAgentOptions => ({
  model,
  setting,
  prompt: "do it",
  sandbox: () => Promise.resolve(new MemorySandbox()),
});

const scripted = (script: object) => createScriptedClient(parseScript(JSON.stringify(script), "play.yaml"));

const shell = (command: string[]) => ({ calls: [{ shell: { command } }] });

function spanOf(name: string): ReadableSpan {
  const span = exporter.getFinishedSpans().find((each) => each.name === name);
  expect(span, name).toBeDefined();
  return span as ReadableSpan;
}

it("a program that has registered a provider gets spans below its own active one", async () => {
  const model = scripted({ steps: [shell(["echo", "hi"]), { text: "Done." }] });
  await trace.getTracer("program").startActiveSpan("its own", async (own) => {
    await runAgent(optionsFor(model));
    own.end();
  });
  const turn = spanOf("invoke_agent brig");
  expect(turn.parentSpanContext?.spanId).toBe(spanOf("its own").spanContext().spanId);
  expect(spanOf("command echo").parentSpanContext?.spanId).toBe(
    spanOf("execute_tool shell").spanContext().spanId,
  );
  expect(JSON.stringify(exporter.getFinishedSpans().map(({ attributes }) => attributes))).not.toContain(
    "do it",
  );
});

it("content is for the program to allow", async () => {
  await runAgent({ ...optionsFor(scripted({ steps: [{ text: "Done." }] })), capturesContent: true });
  expect(spanOf("invoke_agent brig").attributes).toMatchObject({
    "gen_ai.input.messages": expect.stringContaining("do it"),
    "gen_ai.output.messages": expect.stringContaining("Done."),
  });
});

it("an agent's turn is below the call that has started it", async () => {
  const { conversation } = openPlayed(
    inOrder({ calls: [["spawn_agent", { message: "help" }]] }, waitForIt, { text: "done" }),
    [inOrder({ text: "I have helped." })],
  );
  await conversation.runTurn({ prompt: "go" });
  await conversation.close();
  const names = exporter.getFinishedSpans().map(({ name }) => name);
  const started =
    names.find((name) => name.startsWith("invoke_agent ") && name !== "invoke_agent brig") ?? "";
  expect(spanOf(started).parentSpanContext?.spanId).toBe(
    spanOf("execute_tool spawn_agent").spanContext().spanId,
  );
  expect(spanOf(started).attributes).toMatchObject({ "gen_ai.agent.id": expect.any(String) });
});

it("a turn that fails says why, and ends the spans of everything that was open", async () => {
  const failure = new BrigError("no", { code: "model.auth" });
  const model: ModelClient = {
    ...{ provider: "test", model: "m", maxStreamRetries: 0 },
    async *stream(): AsyncGenerator<ModelEvent> {
      yield {
        kind: "item",
        item: { type: "function_call", call_id: "c", name: "shell", arguments: '{"command":["sleep","60"]}' },
      };
      throw failure;
    },
  };
  await runAgent(optionsFor(model));
  expect(spanOf("invoke_agent brig").attributes["error.type"]).toBe("model.auth");
  expect(spanOf("chat m").attributes["error.type"]).toBe("model.auth");
  expect(spanOf("execute_tool shell").ended).toBe(true);
});

it("an endpoint's own name of the model is in the span", async () => {
  const model: ModelClient = {
    ...{ provider: "test", model: "m", maxStreamRetries: 0 },
    async *stream(): AsyncGenerator<ModelEvent> {
      yield {
        kind: "item",
        item: { type: "message", role: "assistant", content: [{ type: "output_text", text: "hi" }] },
      };
      const usage = { inputTokens: 7, cachedInputTokens: 1, outputTokens: 3, reasoningOutputTokens: 0 };
      yield { kind: "completed", usage, model: "m-2026-11-01" };
    },
  };
  const conversation = openConversation({
    model,
    setting,
    sandbox: () => Promise.resolve(new MemorySandbox()),
  });
  await conversation.runTurn({ prompt: "one" });
  await conversation.runTurn({ prompt: "two" });
  await conversation.close();
  expect(spanOf("chat m").attributes).toMatchObject({
    "gen_ai.request.model": "m",
    "gen_ai.response.model": "m-2026-11-01",
    "gen_ai.usage.input_tokens": 7,
    "gen_ai.usage.output_tokens": 3,
  });
  const turns = exporter.getFinishedSpans().filter(({ name }) => name === "invoke_agent brig");
  expect(turns.map(({ attributes }) => attributes["gen_ai.usage.input_tokens"])).toEqual([7, 7]);
});

it("a provider that throws costs spans, and not the turn", async () => {
  trace.disable();
  const failing = new SimpleSpanProcessor(exporter);
  let count = 0;
  failing.onStart = () => {
    count++;
    throw new Error("the processor fails");
  };
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [failing] }));
  const model = scripted({ steps: [shell(["echo", "hi"]), { text: "Done." }] });
  expect(await runAgent(optionsFor(model))).toMatchObject({ status: "completed", lastMessage: "Done." });
  expect(count).toBe(1);
});

it("work in a span of its own is done below it, also if it fails", async () => {
  const facts = { "brig.task.name": "t" };
  const model = scripted({ steps: [{ text: "Done." }] });
  await inSpan({ name: "attempt t", facts, factsOf: () => ({ "brig.attempt.status": "completed" }) }, () =>
    runAgent(optionsFor(model)),
  );
  expect(spanOf("invoke_agent brig").parentSpanContext?.spanId).toBe(
    spanOf("attempt t").spanContext().spanId,
  );
  expect(spanOf("attempt t").attributes).toEqual({ ...facts, "brig.attempt.status": "completed" });
  const failed = inSpan({ name: "attempt u", facts, factsOf: () => ({}) }, async () => {
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  expect(spanOf("attempt u").status.code).toBe(2);
});
