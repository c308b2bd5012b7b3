import { Session } from "node:inspector/promises";
import { Readable } from "node:stream";
import { expect, it, vi } from "vitest";
import { openConversation } from "../../../src/agent/conversation.js";
import { JsonEvents } from "../../../src/agent/jsonl-events.js";
import type { ModelEvent } from "../../../src/agent/model/model-client.js";
import { openSessionFile, type SessionLog } from "../../../src/agent/session/write/session-file.js";
import { RunnerLink } from "../../../src/sandbox/channel/runner-link.js";
import { RunnerStream } from "../../../src/sandbox/channel/runner-stream.js";
import { openTestSandbox, temporaryDirectory } from "../../support/sandbox.js";

/** The first calls load and prepare what the others use. */
const WARM_UP_CALLS = 20;
/**
 * Now and then something else runs beside a call, such as a timer of the sandbox. It does not run beside each of so many, on a slow machine
 * either.
 */
const MEASURED_CALLS = 40;
/** Of them, so many whose stacks are noted. */
const NOTED_CALLS = 5;

/** The most files that hand a call on, so that a person can follow it. */
const MAX_HANDING_ON = 20;
/** The most files that it executes. */
const MAX_EXECUTED = 50;

/** The sources in a stack, also those of the functions that await it. */
function sourcesIn(stack = ""): string[] {
  return [...stack.matchAll(/\/(src\/[^:?)]+)[:?]/g)].map(([, file = ""]) => file);
}

/** Follows which sources are executed. What has no name is the export of a function, or a part of a function with one. */
async function followExecution() {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    /** The sources since the last time. */
    async take(): Promise<Set<string>> {
      const { result } = await session.post("Profiler.takePreciseCoverage");
      const executed = result.filter(
        ({ url, functions }) =>
          !url.includes("/node_modules/") &&
          functions.some(({ functionName, ranges }) => functionName !== "" && (ranges[0]?.count ?? 0) > 0),
      );
      return new Set(executed.flatMap(({ url }) => sourcesIn(`${url}:`)));
    },
    [Symbol.dispose]: () => session.disconnect(),
  };
}

/** Notes the sources that hand a call on: those in the stacks of its request, its output, its events and its records. */
function followStacks(passed: Set<string>) {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = Number.POSITIVE_INFINITY;
  const note = () => {
    if (!follower.areNoted) return;
    for (const file of sourcesIn(new Error("passed").stack)) passed.add(file);
  };
  const { openChannel } = RunnerLink.prototype;
  vi.spyOn(RunnerLink.prototype, "openChannel").mockImplementation(function (this: RunnerLink, ...given) {
    note();
    return openChannel.apply(this, given);
  });
  const { write } = RunnerStream.prototype;
  vi.spyOn(RunnerStream.prototype, "write").mockImplementation(function (this: RunnerStream, ...given) {
    note();
    write.apply(this, given);
  });
  const { push } = Readable.prototype;
  vi.spyOn(Readable.prototype, "push").mockImplementation(function (this: Readable, ...given) {
    note();
    return push.apply(this, given);
  });
  const follower = {
    /** Whether stacks are noted now. */
    areNoted: false,
    note,
    [Symbol.dispose]() {
      Error.stackTraceLimit = stackTraceLimit;
      vi.restoreAllMocks();
    },
  };
  return follower;
}

/** Calls `shell_command` once in each response. `onCall` is called before each call and before the end. */
function callingModel(count: number, onCall: () => Promise<void>) {
  let calls = 0;
  return {
    provider: "test",
    model: "test",
    maxStreamRetries: 0,
    async *stream(): AsyncGenerator<ModelEvent> {
      await onCall();
      const call = { type: "function_call" as const, call_id: `call-${calls}`, name: "shell_command" };
      if (calls++ < count)
        yield { kind: "item", item: { ...call, arguments: JSON.stringify({ command: "echo hi" }) } };
      yield { kind: "completed", usage: null };
    },
  };
}

it("a model's command passes few files on its way to the sandbox, and its end on the way to the session file", async () => {
  await using test = await openTestSandbox();
  await using home = await temporaryDirectory();
  using execution = await followExecution();
  const passed = new Set<string>();
  using stacks = followStacks(passed);
  const executed: Set<string>[] = [];
  let calls = 0;
  const model = callingModel(WARM_UP_CALLS + MEASURED_CALLS, async () => {
    const sources = await execution.take();
    if (++calls > WARM_UP_CALLS + 1) executed.push(sources);
    stacks.areNoted = calls > WARM_UP_CALLS && executed.length < NOTED_CALLS;
  });
  const file = await openSessionFile({ home: home.path, threadId: "call-path", now: () => new Date() });
  const session: SessionLog = {
    path: file.path,
    trouble: null,
    append(record) {
      stacks.note();
      file.append(record);
    },
    close: () => file.close(),
  };
  const json = new JsonEvents();
  const conversation = openConversation({
    model,
    session,
    sandbox: test.sandbox,
    setting: {
      cwd: test.workspace,
      sandboxMode: "workspace-write",
      approvalPolicy: "on-request",
      network: { kind: "none" },
      writableRoots: [],
      shell: "bash",
      timezone: "UTC",
    },
    onEvent(event) {
      stacks.note();
      json.translate(event);
    },
  });
  const { status, toolCalls } = await conversation.runTurn({ prompt: "go" });
  await conversation.close();
  expect({ status, toolCalls }).toEqual({ status: "completed", toolCalls: WARM_UP_CALLS + MEASURED_CALLS });
  expect(executed).toHaveLength(MEASURED_CALLS);
  const common = [...(executed[0] ?? [])].filter((source) =>
    executed.every((sources) => sources.has(source)),
  );
  expect(common).toContain("src/sandbox/process/command.ts");
  expect(passed).toContain("src/sandbox/process/command.ts");
  expect(passed.size).toBeLessThanOrEqual(MAX_HANDING_ON);
  expect(common.length).toBeLessThanOrEqual(MAX_EXECUTED);
});
