import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it } from "vitest";
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type ApprovalSituation,
  type Approver,
  SessionApprovals,
} from "../../../../src/agent/approvals/approvals.js";
import { JsonEvents } from "../../../../src/agent/jsonl-events.js";
import { openSessionFile } from "../../../../src/agent/session/write/session-file.js";
import { BrigError } from "../../../../src/errors.js";
import type { ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";
import type { CommandToReview, PatchToReview } from "../../../../src/tools/review/action.js";
import type { ToolActivity } from "../../../../src/tools/tool.js";
import { type ApprovalPlay, playApprovals, ScriptedApprover } from "../../../support/approvals.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const folder = mkdtempSync(join(tmpdir(), "brig-approvals-"));

afterAll(() => {
  rmSync(folder, { recursive: true });
});

const restricted: ApprovalSituation = {
  policy: "untrusted",
  isRestricted: true,
  hasNetwork: false,
  canEscalate: true,
};

function command(argv: string[], more: Partial<CommandToReview> = {}): CommandToReview {
  const escalation = { isAsked: false, justification: null, prefixRule: null };
  return { kind: "command", tool: "shell", argv, cwd: "/work", takesInput: false, escalation, ...more };
}

function patch(...paths: string[]): PatchToReview {
  const changes = paths.map((path) => ({ kind: "update" as const, path }));
  return { kind: "patch", tool: "apply_patch", patch: "*** Begin Patch…", changes, cwd: "/work" };
}

/** Answers when it is told to. */
class PatientApprover implements Approver {
  readonly asked: { request: ApprovalRequest; answer: (answer: ApprovalAnswer) => void }[] = [];

  ask(request: ApprovalRequest): Promise<ApprovalAnswer> {
    return new Promise((answer) => {
      this.asked.push({ request, answer });
    });
  }

  names(): string[] {
    return this.asked.map(({ request: { action } }) =>
      action.kind === "command" ? action.argv.join(" ") : "patch",
    );
  }
}

const approvals = (approver?: Approver, situation: Partial<ApprovalSituation> = {}) =>
  new SessionApprovals({ situation: { ...restricted, ...situation }, approver });

/** Waits for these questions: what is known of commands is loaded only now. */
async function asked(approver: PatientApprover, names: string[]): Promise<void> {
  await expect.poll(() => approver.names(), { timeout: 20_000 }).toEqual(names);
}

const from = (position: number) => ({ origin: { callId: `call-${position}`, position } });

describe("questions", () => {
  it("are asked one at a time, the earlier call's first", async () => {
    const approver = new PatientApprover();
    const review = approvals(approver);
    const verdicts = [
      review.review(command(["make", "1"]), from(1)),
      review.review(command(["make", "3"]), from(3)),
      review.review(command(["make", "2"]), from(2)),
    ];
    await asked(approver, ["make 1"]);
    approver.asked[0]?.answer("approved");
    await asked(approver, ["make 1", "make 2"]);
    approver.asked[1]?.answer("denied");
    await asked(approver, ["make 1", "make 2", "make 3"]);
    approver.asked[2]?.answer("approved");
    expect(await Promise.all(verdicts)).toMatchObject([
      { kind: "run" },
      { kind: "run" },
      { kind: "refused" },
    ]);
  });

  it("that an answer before them has settled are not asked any more", async () => {
    const approver = new PatientApprover();
    const review = approvals(approver);
    const verdicts = [review.review(command(["make"]), from(1)), review.review(command(["make"]), from(2))];
    await asked(approver, ["make"]);
    approver.asked[0]?.answer("approved_for_session");
    expect(await Promise.all(verdicts)).toMatchObject([{ kind: "run" }, { kind: "run" }]);
    expect(approver.asked).toHaveLength(1);
  });

  it("end with the call that asks, also those that wait", async () => {
    const approver = new PatientApprover();
    const review = approvals(approver);
    const stop = new AbortController();
    const activities: ToolActivity[] = [];
    const call = { signal: stop.signal, onActivity: (activity: ToolActivity) => activities.push(activity) };
    const ended = [
      review.review(command(["a"]), { ...call, ...from(1) }),
      review.review(command(["b"]), { ...call, ...from(2) }),
    ];
    const other = review.review(command(["c"]), from(3));
    await asked(approver, ["a"]);
    stop.abort(new Error("enough"));
    const results = await Promise.allSettled(ended);
    expect(results.map((result) => result.status === "rejected" && String(result.reason))).toEqual([
      "Error: enough",
      "Error: enough",
    ]);
    expect(activities).toMatchObject([
      { kind: "approval-requested" },
      { kind: "approval-answered", answer: "withdrawn" },
    ]);
    await asked(approver, ["a", "c"]);
    approver.asked[1]?.answer("approved");
    expect(await other).toMatchObject({ kind: "run" });
    await expect(review.review(command(["d"]), { signal: stop.signal })).rejects.toThrow("enough");
  });

  it("are asked again after an approver that failed, and nothing ran on its failure", async () => {
    let isBroken = true;
    const review = approvals({
      ask: () => (isBroken ? Promise.reject(new Error("no terminal")) : Promise.resolve("approved")),
    });
    await expect(review.review(command(["make"]), {})).rejects.toThrow("no terminal");
    isBroken = false;
    expect(await review.review(command(["make"]), {})).toMatchObject({ kind: "run" });
  });
});

describe("an answer", () => {
  it("that ends the turn rejects with `aborted`", async () => {
    const review = approvals(new ScriptedApprover("abort"));
    await expect(review.review(command(["make"]), {})).rejects.toMatchObject({ code: "aborted" });
  });

  it("with a prefix that was not offered approves this once only", async () => {
    const approver = new ScriptedApprover({ approvedPrefix: ["make"] });
    const review = approvals(approver);
    expect(await review.review(command(["make", "x"]), {})).toMatchObject({ kind: "run" });
    await review.review(command(["make", "y"]), {});
    expect(approver.asked).toHaveLength(2);
  });

  it("with the prefix that was offered approves what begins so, from then on", async () => {
    const approver = new ScriptedApprover({ approvedPrefix: ["make", "x"] });
    const review = approvals(approver);
    await review.review(command(["make", "x"]), {});
    await review.review(command(["bash", "-c", "cd sub && make x -j2"]), {});
    expect(approver.asked).toHaveLength(1);
    await review.review(command(["make", "y"]), {});
    expect(approver.asked).toHaveLength(2);
  });

  it("with a prefix is not for a command that takes input, which could be told anything later", async () => {
    const approver = new ScriptedApprover({ approvedPrefix: ["make", "x"] }, "approved_for_session");
    const review = approvals(approver);
    await review.review(command(["make", "x"]), {});
    await review.review(command(["make", "x", "y"], { takesInput: true }), {});
    await review.review(command(["make", "x", "y"], { takesInput: true }), {});
    expect(approver.asked.map(({ prefix }) => prefix)).toEqual([["make", "x"], null]);
  });

  it("about a patch is for its files, all of which must be approved", async () => {
    const approver = new ScriptedApprover("approved_for_session", "approved_for_session", "denied");
    const review = approvals(approver);
    await review.review(patch("/work/a"), {});
    await review.review(patch("/work/b", "/work/c"), {});
    expect(await review.review(patch("/work/c", "/work/a"), {})).toMatchObject({ kind: "run" });
    expect(approver.asked).toHaveLength(2);
    expect(await review.review(patch("/work/a", "/work/d"), {})).toMatchObject({ kind: "refused" });
  });
});

describe("without anybody to ask", () => {
  it("what would be asked is refused, and what failed stays failed", async () => {
    const review = approvals();
    expect(await review.review(command(["make"]), {})).toEqual({
      kind: "refused",
      reason: { by: "policy", text: "approval required by policy, but nobody is there to approve it" },
    });
    expect(await review.review(command(["ls"]), {})).toMatchObject({ kind: "run", place: "sandbox" });
    const failed = {
      findDenial: () => ({ errno: "EROFS", evidence: "", toldBy: "command" as const }),
    };
    expect(await review.reviewFailure(command(["make"]), failed, {})).toBe("stands");
  });

  it("and without a second sandbox, asking to leave is answered so", async () => {
    const review = approvals(new ScriptedApprover("approved"), { policy: "on-request", canEscalate: false });
    const escalation = { isAsked: true, justification: null, prefixRule: null };
    expect(await review.review(command(["make"], { escalation }), {})).toEqual({
      kind: "refused",
      reason: {
        by: "policy",
        text: "this session has no sandbox with full access; reject command — run it without require_escalated",
      },
    });
  });
});

async function play(
  responses: ApprovalPlay["responses"],
  options: Partial<ApprovalPlay> & { policy?: ApprovalPolicy } = {},
) {
  const { policy = "untrusted", ...rest } = options;
  const sandbox = new MemorySandbox();
  return await playApprovals({
    responses,
    cwd: folder,
    sandbox,
    escalated: () => Promise.resolve(sandbox),
    situation: { ...restricted, policy },
    ...rest,
  });
}

const shell = (...argv: string[]) => ({ shell: { command: argv } });

describe("in the loop", () => {
  // This test and the next wait for a person at the same time.
  it.concurrent("the time that a person takes is neither the call's nor its timeout's", async () => {
    const timeoutMs = 1500;
    const approver: Approver = { ask: () => sleep(timeoutMs + 100).then(() => "approved") };
    const startedAt = performance.now();
    const { result, outputs, events } = await play(
      [[{ shell: { command: ["sort", "/dev/null"], timeout_ms: timeoutMs } }]],
      { approver },
    );
    const tookMs = performance.now() - startedAt;
    const [, seconds] = /"exit_code":0,"duration_seconds":(\d+\.\d)/.exec(outputs[0] ?? "") ?? [];
    expect(Number(seconds)).toBeLessThan(timeoutMs / 1000);
    const answered = events.find((event) => event.kind === "approval-answered");
    expect(answered).toMatchObject({ answer: "approved" });
    const [latencyMs = Number.NaN] = result.callLatenciesMs;
    expect(latencyMs + (answered?.waitedMs ?? Number.NaN)).toBeLessThanOrEqual(tookMs);
  });

  it.concurrent("a cell's time stands still while a person is asked", async () => {
    const source =
      '// codex-js-repl: timeout_ms=1500\nconsole.log(typeof (await codex.tool("shell", { command: ["rm", "-f", "x"] })))';
    const approver: Approver = { ask: () => sleep(1600).then(() => "denied") };
    // The first cell starts the process, which takes its time on a busy machine.
    const { outputs } = await play([[{ js_repl: "1" }], [{ js_repl: source }]], {
      approver,
      gates: { js_repl: true },
      policy: "on-request",
    });
    expect(outputs[1]).toContain("object");
  });

  it("an answer that ends the turn interrupts it, and every call has an output", async () => {
    const { result, events, outputs } = await play([[shell("sort", "x"), shell("ls")]], {
      approver: new ScriptedApprover("abort"),
    });
    expect(result.status).toBe("interrupted");
    expect(result.error).toBeUndefined();
    expect(events.at(-1)?.kind).toBe("turn-interrupted");
    expect(events.some(({ kind }) => kind === "command-started")).toBe(false);
    expect(outputs.length).toBeLessThanOrEqual(1);
  });

  it("an interrupt takes the question away", async () => {
    const stop = new AbortController();
    const approver = new PatientApprover();
    const { result, outputs } = await play([[shell("sort", "x")]], {
      approver,
      signal: stop.signal,
      onEvent: ({ kind }) => {
        if (kind === "approval-requested") stop.abort(new Error("ctrl-C"));
      },
    });
    expect(result.status).toBe("interrupted");
    expect(outputs[0]).toMatch(/^Wall time: 0\.\d seconds\naborted by user$/);
  });

  it("a declined command is told of, and not as one that ran", async () => {
    const { events } = await play(
      [[shell("make", "it all")], [{ exec_command: { cmd: "make", login: false } }]],
      {
        approver: new ScriptedApprover("denied"),
      },
    );
    const json = new JsonEvents();
    const lines = events
      .flatMap((event) => json.translate(event))
      .filter(({ type }) => type.startsWith("item."));
    const item = { type: "command_execution", command: "make 'it all'" };
    expect(lines.slice(0, 2)).toEqual([
      {
        type: "item.started",
        item: { ...item, id: "item_0", aggregated_output: "", exit_code: null, status: "in_progress" },
      },
      {
        type: "item.completed",
        item: {
          ...item,
          id: "item_0",
          aggregated_output: "exec command rejected by user",
          exit_code: -1,
          status: "declined",
        },
      },
    ]);
    expect(lines[3]).toMatchObject({
      item: { status: "declined", aggregated_output: "exec command rejected by user" },
    });
  });

  it("every question and answer is in the session file", async () => {
    const session = await openSessionFile({ home: folder, threadId: "t-1", now: () => new Date() });
    await play([[shell("sort", "/dev/null")], [shell("rm", "-f", "x")]], {
      session,
      approver: new ScriptedApprover("approved_for_session", "denied"),
    });
    const lines = readFileSync(session.path ?? "", "utf8")
      .trim()
      .split("\n");
    const records = lines.map(
      (line) => JSON.parse(line) as { type: string; payload: Record<string, unknown> },
    );
    const asked = records.filter(({ type }) => type === "brig.approval").map(({ payload }) => payload);
    const question = {
      call_id: "call_1_1",
      tool: "shell",
      cwd: folder,
      command: ["sort", "/dev/null"],
      justification: null,
      place: "sandbox",
      reason: null,
      denial: null,
      prefix: ["sort", "/dev/null"],
    };
    expect(asked).toEqual([
      question,
      { ...question, answer: "approved_for_session", waited_ms: expect.any(Number) },
      expect.objectContaining({ command: ["rm", "-f", "x"], prefix: null }),
      expect.objectContaining({ command: ["rm", "-f", "x"], answer: "denied" }),
    ]);
  });

  it("patches that ask at the same time are asked about in the order of their calls", async () => {
    const add = (name: string) => ({
      apply_patch: `*** Begin Patch\n*** Add File: ${name}\n+x\n*** End Patch\n`,
    });
    const approver = new ScriptedApprover("approved", "denied", "approved");
    const { outputs } = await play([[add("one"), add("two"), add("three")]], { approver });
    expect(approver.asked.map(({ callId }) => callId)).toEqual(["call_1_1", "call_1_2", "call_1_3"]);
    // Their beginnings tell the time that they took.
    expect(outputs.map((output) => output.trimEnd().split("\n").at(-1)).toSorted()).toEqual([
      "A one",
      "A three",
      "patch rejected by user",
    ]);
  });

  it("a cell of js_repl is asked about where every program is, and what it calls besides", async () => {
    const source = 'console.log((await codex.tool("shell", { command: ["make"] })).content ?? "")';
    const approver = new ScriptedApprover("denied", "approved", "denied");
    const { events, outputs } = await play([[{ js_repl: source }], [{ js_repl: source }]], {
      approver,
      gates: { js_repl: true },
    });
    expect(outputs[0]).toBe("js_repl cell rejected by user");
    expect(approver.asked.map(({ callId, action }) => [callId, action.tool])).toEqual([
      ["call_1_1", "js_repl"],
      ["call_2_1", "js_repl"],
      ["call_2_1", "shell"],
    ]);
    expect(events.filter(({ kind }) => kind === "command-declined")).toMatchObject([
      { callId: "call_2_1", argv: ["make"], reason: "exec command rejected by user" },
    ]);
    const free = new ScriptedApprover("denied");
    await play([[{ js_repl: "1 + 1" }]], { approver: free, gates: { js_repl: true }, policy: "on-request" });
    expect(free.asked).toEqual([]);
  });

  it("what leaves the sandbox is not told that it has no network", async () => {
    const show = "printenv CODEX_SANDBOX_NETWORK_DISABLED || echo unset";
    const call = { shell: { command: ["bash", "-c", show] } };
    const { outputs } = await play(
      [[call], [{ shell: { ...call.shell, sandbox_permissions: "require_escalated" } }]],
      {
        approver: new ScriptedApprover("approved"),
        policy: "on-request",
        environment: { CODEX_SANDBOX_NETWORK_DISABLED: "1" },
      },
    );
    expect(outputs).toEqual([
      expect.stringContaining('"output":"1\\n"'),
      expect.stringContaining('"output":"unset\\n"'),
    ]);
  });

  it("a second sandbox that cannot be started fails the call and not the turn", async () => {
    const call = { shell: { command: ["make"], sandbox_permissions: "require_escalated" } };
    const { result, outputs } = await play([[call]], {
      approver: new ScriptedApprover("approved"),
      policy: "on-request",
      escalated: () => Promise.reject(new BrigError("no room", { code: "engine.failed" })),
    });
    expect(result.status).toBe("completed");
    expect(outputs).toEqual(["the sandbox with full access could not be started: no room"]);
  });
});
