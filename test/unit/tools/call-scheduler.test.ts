import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../src/errors.js";
import { sharedSignal } from "../../../src/lib/time/shared-signal.js";
import { type CallableTools, CallScheduler, type ToolCall } from "../../../src/tools/call-scheduler.js";
import { createToolRegistry } from "../../../src/tools/registry.js";
import { MemorySandbox } from "../../support/memory-sandbox.js";

/** Tools that note when they start and end; their argument says for how long they run. */
function createJournal(parallelTools: readonly string[]) {
  const journal: string[] = [];
  const shell = createToolRegistry(new MemorySandbox(), { cwd: "/" }).get("shell");
  const registry: CallableTools = {
    has: () => true,
    refusalOf: () => null,
    get: (name) => ({
      ...shell,
      name,
      supportsParallel: parallelTools.includes(name),
      async execute(args) {
        const { id, ms } = args as { id: string; ms: number };
        journal.push(`${id} starts`);
        await sleep(ms);
        journal.push(`${id} ends`);
        return { content: id, success: true };
      },
    }),
  };
  return { journal, registry };
}

function call(name: string, id: string, ms: number): ToolCall {
  return { callId: id, name, kind: "function", input: JSON.stringify({ id, ms }) };
}

const never = sharedSignal(new AbortController().signal);

describe("calls of one response", () => {
  it("run beside each other when all their tools support it, and their outputs keep the order of the calls", async () => {
    const { journal, registry } = createJournal(["read"]);
    const scheduler = new CallScheduler(registry, { signal: never });
    const outcomes = await Promise.all([
      scheduler.run(call("read", "a", 60)),
      scheduler.run(call("read", "b", 10)),
    ]);
    expect(journal).toEqual(["a starts", "b starts", "b ends", "a ends"]);
    expect(outcomes.map(({ content }) => content)).toEqual(["a", "b"]);
  });

  it("wait for one that must be alone, and it waits for those before", async () => {
    const { journal, registry } = createJournal(["read"]);
    const scheduler = new CallScheduler(registry, { signal: never });
    await Promise.all([
      scheduler.run(call("read", "a", 40)),
      scheduler.run(call("read", "b", 20)),
      scheduler.run(call("write", "c", 10)),
      scheduler.run(call("read", "d", 20)),
      scheduler.run(call("read", "e", 10)),
    ]);
    expect(journal).toEqual([
      "a starts",
      "b starts",
      "b ends",
      "a ends",
      "c starts",
      "c ends",
      "d starts",
      "e starts",
      "e ends",
      "d ends",
    ]);
  });

  it("start at once, without waiting for the calls that follow", async () => {
    const { journal, registry } = createJournal([]);
    const scheduler = new CallScheduler(registry, { signal: never });
    void scheduler.run(call("write", "a", 50));
    await expect.poll(() => journal[0]).toBe("a starts");
  });
});

describe("command sessions of one response", () => {
  const sandbox = new MemorySandbox();
  const tools = createToolRegistry(sandbox, { cwd: "/tmp" });
  const together = (calls: readonly (readonly [name: string, args: object])[]) => {
    const scheduler = new CallScheduler(tools, { signal: never });
    return Promise.all(
      calls.map(([name, args], at) =>
        scheduler.run({ callId: `c${at}`, name, kind: "function", input: JSON.stringify(args) }),
      ),
    );
  };
  const idOf = (content: string | undefined) => Number(/session ID (\d+)/.exec(content ?? "")?.[1]);

  it("start side by side: each of two waits for what the other makes", async () => {
    const folder = await mkdtemp(join(tmpdir(), "brig-beside-"));
    const meet = (mine: string, other: string) =>
      [
        "exec_command",
        {
          cmd: `touch ${mine}; until test -e ${other}; do sleep 0.05; done; echo met`,
          login: false,
          workdir: folder,
          yield_time_ms: 30_000,
        },
      ] as const;
    const outcomes = await together([meet("one", "two"), meet("two", "one")]);
    for (const { content } of outcomes) expect(content).toContain("met");
    await rm(folder, { recursive: true });
  });

  it("are typed into in the order of the calls, two of them beside each other", async () => {
    const cat = ["exec_command", { cmd: "cat", login: false, tty: true, yield_time_ms: 250 }] as const;
    const [one, two] = (await together([cat, cat])).map(({ content }) => idOf(content));
    const type = (session_id: number | undefined, chars: string) =>
      ["write_stdin", { session_id, chars, yield_time_ms: 250 }] as const;
    const outcomes = await together([type(one, "a\n"), type(two, "b\n"), type(one, "c\n"), type(one, "d\n")]);
    const order = outcomes.map(({ content }) => content.slice(content.indexOf("Output:\n") + 8));
    expect(order).toEqual([
      expect.stringContaining("a"),
      expect.stringContaining("b"),
      expect.stringContaining("c"),
      expect.stringContaining("d"),
    ]);
    await tools.close();
  });

  it("look at one another's after, and at different ones beside each other", async () => {
    const write = tools.get("write_stdin");
    expect(write.supportsParallel && tools.get("exec_command").supportsParallel).toBe(true);
    expect(write.orderedBy?.({ session_id: 1 })).toBe(write.orderedBy?.({ session_id: 1, chars: "x" }));
    expect(write.orderedBy?.({ session_id: 1 })).not.toBe(write.orderedBy?.({ session_id: 2 }));
    expect(write.orderedBy?.({})).toBeNull();
  });
});

describe("the output of a call", () => {
  const sandbox = new MemorySandbox();
  const tools = createToolRegistry(sandbox, { cwd: "/tmp" });

  function run(name: string, input: string, kind: "function" | "custom" = "function") {
    return new CallScheduler(tools, { signal: never }).run({ callId: "c", name, kind, input });
  }

  it.each([
    ["nope", "{}", "function", "unsupported call: nope"],
    ["nope", "text", "custom", "unsupported custom tool call: nope"],
    ["shell", "text", "custom", "tool shell invoked with incompatible payload"],
    ["shell", "{}", "function", "failed to parse function arguments: missing field `command`"],
  ] as const)("of %s with %j as a %s call is %j", async (name, input, kind, content) => {
    expect(await run(name, input, kind)).toMatchObject({ content, success: false });
  });

  it("tells what is wrong with arguments that are not JSON", async () => {
    const { content } = await run("shell", "{oops");
    expect(content).toMatch(/^failed to parse function arguments: .+/);
  });

  it.each([
    ["shell", '{"command":["sleep","30"]}', /^Wall time: (\d+\.\d) seconds\naborted by user$/],
    [
      "shell_command",
      '{"command":"sleep 30","login":false}',
      /^Wall time: (\d+\.\d) seconds\naborted by user$/,
    ],
    ["exec_command", '{"cmd":"sleep 30","login":false}', /^aborted by user after (\d+\.\d)s$/],
  ])("of %s says that it was aborted, and after how long", async (name, input, text) => {
    const startedAt = performance.now();
    const scheduler = new CallScheduler(tools, { signal: AbortSignal.timeout(250) });
    const { content } = await scheduler.run({ callId: "c", name, kind: "function", input });
    const seconds = Number(text.exec(content)?.[1]);
    expect(seconds).toBeGreaterThanOrEqual(0.2);
    expect(seconds).toBeLessThan((performance.now() - startedAt) / 1000 + 0.1);
  });

  it("says at least 0.1 s for a call that never started", async () => {
    const scheduler = new CallScheduler(tools, { signal: AbortSignal.abort() });
    const outcome = await scheduler.run({ callId: "c", name: "exec_command", kind: "function", input: "{}" });
    expect(outcome.content).toBe("aborted by user after 0.1s");
  });

  it.each([
    ["shell", "Wall time: 0.1 seconds\naborted: no space left on device"],
    ["exec_command", "aborted after 0.1s: no space left on device"],
  ])("of %s says which failure ended it, and not that a person did", async (name, text) => {
    const failed = new BrigError("no space left on device", { code: "engine.failed" });
    const stop = new AbortController();
    const starting = Promise.reject(failed);
    starting.catch(() => stop.abort(failed));
    await new Promise((resolve) => stop.signal.addEventListener("abort", resolve));
    const scheduler = new CallScheduler(tools, { signal: stop.signal, ready: starting });
    const { content } = await scheduler.run({ callId: "c", name, kind: "function", input: "{}" });
    expect(content).toBe(text);
  });

  it("says that a person ended it where brig was told to stop", async () => {
    const signal = AbortSignal.abort(new BrigError("interrupted by SIGINT", { code: "aborted" }));
    const scheduler = new CallScheduler(tools, { signal });
    const outcome = await scheduler.run({ callId: "c", name: "exec_command", kind: "function", input: "{}" });
    expect(outcome.content).toBe("aborted by user after 0.1s");
  });

  it("is that of arguments after a byte order mark, too", async () => {
    const scheduler = new CallScheduler(tools, { signal: never });
    const input = '\ufeff{"cmd":"echo marked","login":false}';
    const outcome = await scheduler.run({ callId: "c", name: "exec_command", kind: "function", input });
    expect(outcome.content).toContain("marked");
    const wrong = await scheduler.run({
      callId: "d",
      name: "exec_command",
      kind: "function",
      input: "\ufeff{}",
    });
    expect(wrong.content).toBe("failed to parse function arguments: missing field `cmd`");
  });

  it("counts only from when the sandbox is ready", async () => {
    const startedAt = performance.now();
    let readyAfterMs = 0;
    const ready = sleep(300).then(() => {
      readyAfterMs = performance.now() - startedAt;
    });
    const scheduler = new CallScheduler(tools, { signal: never, ready });
    const call: ToolCall = { callId: "c", name: "shell", kind: "function", input: '{"command":["true"]}' };
    const { durationMs } = await scheduler.run(call);
    expect(readyAfterMs + durationMs).toBeLessThanOrEqual(performance.now() - startedAt);
  });

  it("comes at once after an abort, even while the sandbox is still starting", async () => {
    const scheduler = new CallScheduler(tools, {
      signal: AbortSignal.timeout(50),
      ready: new Promise(() => undefined),
    });
    const call: ToolCall = { callId: "c", name: "exec_command", kind: "function", input: "{}" };
    expect((await scheduler.run(call)).content).toBe("aborted by user after 0.1s");
  });

  it("is refused when the sandbox is gone: no call can succeed any more", async () => {
    const gone = new BrigError("the container is gone", { code: "sandbox.gone", reason: "killed" });
    const { files } = new MemorySandbox();
    const dead = createToolRegistry({ spawn: () => Promise.reject(gone), files }, { cwd: "/" });
    const scheduler = new CallScheduler(dead, { signal: never });
    await expect(
      scheduler.run({ callId: "c", name: "shell", kind: "function", input: '{"command":["ls"]}' }),
    ).rejects.toBe(gone);
  });
});
