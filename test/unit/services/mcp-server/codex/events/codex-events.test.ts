import { describe, expect, it } from "vitest";
import type { AgentEvent } from "../../../../../../src/agent/turn/events.js";
import { BrigError } from "../../../../../../src/errors.js";
import { CodexEvents } from "../../../../../../src/services/mcp-server/codex/events/codex-events.js";

const setting = {
  cwd: "/work",
  sandboxMode: "read-only",
  network: { kind: "none" as const },
  writableRoots: [],
  shell: "bash",
  timezone: "UTC",
};

function events() {
  return new CodexEvents({
    threadId: "thread",
    model: "m",
    provider: "p",
    sessionFile: null,
    windowTokens: () => 1000,
    setting: () => setting,
    now: () => new Date(5000),
  });
}

const usage = { inputTokens: 10, cachedInputTokens: 1, outputTokens: 5, reasoningOutputTokens: 2 };
const translated = (translator: CodexEvents, ...given: AgentEvent[]) =>
  given.flatMap((event) => translator.translate(event)).map(({ msg }) => msg);
const types = (messages: readonly { type: string }[]) => messages.map(({ type }) => type);

describe("the events of a session", () => {
  it("begin with its configuration", () => {
    expect(events().configured()).toEqual({
      id: "",
      msg: {
        type: "session_configured",
        session_id: "thread",
        thread_id: "thread",
        model: "m",
        model_provider_id: "p",
        approval_policy: "never",
        approvals_reviewer: "user",
        sandbox_policy: { type: "read-only", network_access: false },
        cwd: "/work",
      },
    });
  });

  it("have the id of their turn, another one for each", () => {
    const translator = events();
    const [first] = translator.begin("one");
    const [second] = translator.begin("two");
    expect(first?.id).not.toBe(second?.id);
    expect(translator.translate({ kind: "message", text: "hi" })[0]?.id).toBe(second?.id);
  });

  it("count tokens once the calls of the response have ended, and in all", () => {
    const translator = events();
    translator.begin("go");
    expect(translator.beginResponse()).toEqual([]);
    translator.count(usage);
    expect(types(translator.beginResponse().map(({ msg }) => msg))).toEqual(["token_count"]);
    translator.count(usage);
    const ended = translated(translator, { kind: "turn-completed", usage });
    expect(types(ended)).toEqual(["token_count", "task_complete"]);
    expect(ended[0]?.info).toMatchObject({
      total_token_usage: { input_tokens: 20, total_tokens: 30 },
      last_token_usage: { input_tokens: 10, total_tokens: 15 },
      model_context_window: 1000,
    });
  });

  it("tell what a patch printed, which is known when its call ends", () => {
    const translator = events();
    const call = { callId: "c", name: "apply_patch" };
    const patch = "*** Begin Patch\n*** Add File: a\n+b\n*** End Patch";
    const changes = [{ path: "a", kind: "add" as const }];
    const before = translated(
      translator,
      { kind: "call-started", ...call, input: patch },
      { kind: "patch-started", callId: "c", changes, patch },
      { kind: "patch-ended", callId: "c", changes, success: true },
    );
    expect(types(before)).toEqual(["item_started", "patch_apply_begin"]);
    const ended = { ...call, content: "Success.", success: true, durationMs: 1 };
    const after = translated(translator, { kind: "call-ended", ...ended });
    expect(types(after)).toEqual(["item_completed", "patch_apply_end"]);
    expect(after[1]).toMatchObject({ stdout: "Success.", stderr: "", success: true, status: "completed" });
  });

  it("say why a turn failed, with brig's code and hint", () => {
    const error = new BrigError("no login", { code: "model.auth", hint: "log in" });
    expect(translated(events(), { kind: "turn-failed", error })).toEqual([
      {
        type: "error",
        message: "no login",
        codex_error_info: "unauthorized",
        code: "model.auth",
        hint: "log in",
      },
    ]);
  });

  it("tell of a command's end even after the turn, and of none that never began", () => {
    const translator = events();
    const end = { kind: "command-ended", callId: "c", exitCode: 1, output: "o", durationMs: 1500 } as const;
    const used = { userMs: 0, systemMs: 0, maxMemoryBytes: 0 } as never;
    expect(translated(translator, { ...end, usage: used })).toEqual([]);
    translated(translator, { kind: "command-started", callId: "c", argv: ["a", "b c"], cwd: "/work" });
    const [, message] = translated(translator, { ...end, usage: used });
    expect(message).toMatchObject({
      type: "exec_command_end",
      cwd: "file:///work",
      parsed_cmd: [{ type: "unknown", cmd: "a 'b c'" }],
      exit_code: 1,
      status: "failed",
      duration: { secs: 1, nanos: 500_000_000 },
    });
  });
});
