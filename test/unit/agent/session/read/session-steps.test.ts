import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { atifDocument } from "../../../../../src/agent/session/export-atif.js";
import { readSessionLines } from "../../../../../src/agent/session/read/session-lines.js";
import { loadSession } from "../../../../../src/agent/session/read/session-reader.js";
import { type SessionStep, stepsOf } from "../../../../../src/agent/session/read/session-steps.js";
import { forkSession } from "../../../../../src/agent/session/session-fork.js";

const codexRollout = fileURLToPath(
  new URL("../../../../fixtures/rollouts/codex-0.169.jsonl", import.meta.url),
);
const brigRollout = fileURLToPath(new URL("../../../../fixtures/rollouts/brig.jsonl", import.meta.url));
let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

async function steps(path: string): Promise<SessionStep[]> {
  const all: SessionStep[] = [];
  for await (const step of stepsOf(readSessionLines(path))) all.push(step);
  return all;
}

async function exported(path: string) {
  let text = "";
  for await (const piece of atifDocument(path)) text += piece;
  return atif.parse(JSON.parse(text));
}

const path = z.string();
const textPart = z.strictObject({ type: z.literal("text"), text: z.string() });
const imagePart = z.strictObject({
  type: z.literal("image"),
  source: z.strictObject({
    media_type: z.enum(["image/png", "image/jpeg", "image/gif", "image/webp"]),
    path,
  }),
});
const content = z.union([z.string(), z.array(z.union([textPart, imagePart]))]);
const extra = z.record(z.string(), z.unknown());

/** The fields of ATIF 1.7 and no others. */
const atifStep = z
  .strictObject({
    step_id: z.int().min(1),
    timestamp: z.iso.datetime().optional(),
    source: z.enum(["system", "user", "agent"]),
    message: content,
    model_name: z.string().optional(),
    reasoning_effort: z.union([z.string(), z.number()]).optional(),
    reasoning_content: z.string().optional(),
    tool_calls: z
      .array(
        z.strictObject({
          tool_call_id: z.string(),
          function_name: z.string(),
          arguments: z.record(z.string(), z.unknown()),
        }),
      )
      .optional(),
    observation: z
      .strictObject({
        results: z.array(
          z.strictObject({
            source_call_id: z.string().optional(),
            content: content.optional(),
            extra: extra.optional(),
          }),
        ),
      })
      .optional(),
    metrics: z
      .strictObject({
        prompt_tokens: z.int(),
        completion_tokens: z.int(),
        cached_tokens: z.int(),
        extra: extra.optional(),
      })
      .optional(),
    llm_call_count: z.int().optional(),
    is_copied_context: z.boolean().optional(),
    extra: extra.optional(),
  })
  .refine(
    (step) => {
      const called = step.tool_calls?.map(({ tool_call_id }) => tool_call_id) ?? [];
      return (
        step.observation?.results.every(
          ({ source_call_id: id }) => id === undefined || called.includes(id),
        ) ?? true
      );
    },
    { error: "every source_call_id matches a call of the same step" },
  )
  .refine(
    (step) =>
      step.source === "agent" ||
      (
        [
          "model_name",
          "reasoning_effort",
          "reasoning_content",
          "tool_calls",
          "metrics",
          "observation",
        ] as const
      ).every((key) => step[key] === undefined),
    { error: "only an agent's step has what an agent does" },
  );

const atif = z
  .strictObject({
    schema_version: z.literal("ATIF-v1.7"),
    session_id: z.string().optional(),
    agent: z.strictObject({ name: z.string(), version: z.string(), model_name: z.string().optional() }),
    steps: z.array(atifStep),
    final_metrics: z.strictObject({
      total_prompt_tokens: z.int().optional(),
      total_completion_tokens: z.int().optional(),
      total_cached_tokens: z.int().optional(),
      total_steps: z.int(),
      extra: extra.optional(),
    }),
    extra: extra.optional(),
  })
  .refine(({ steps: all }) => all.every(({ step_id }, index) => step_id === index + 1), {
    error: "steps are numbered from 1 without gaps",
  })
  .refine(({ steps: all, final_metrics }) => final_metrics.total_steps === all.length);

const agentSteps = (all: SessionStep[]) => all.filter((step) => step.source === "agent");

describe("the steps of a session", () => {
  it("are what brig told, what the user asked, and the responses with what their calls gave", async () => {
    const all = await steps(brigRollout);
    expect(all.map(({ source }) => source).join(" ")).toMatch(
      /^system system system user agent agent agent user agent$/,
    );
    const [first, second] = agentSteps(all);
    expect(first).toMatchObject({
      text: "I look.",
      reasoning: "Thinking",
      model: "gpt-5-test",
      usage: { inputTokens: 100, outputTokens: 20 },
      calls: [
        { name: "shell", output: expect.stringContaining("hi"), cost: { success: true } },
        { name: "apply_patch", isFreeform: true, output: expect.stringContaining("Success") },
      ],
    });
    expect(second).toMatchObject({ calls: [{ name: "view_image" }], usage: { inputTokens: 150 } });
  });

  it("tell two responses apart by the outputs and the count between them, in Codex's files too", async () => {
    const all = agentSteps(await steps(codexRollout));
    expect(all.map(({ calls }) => calls.map(({ name }) => name))).toEqual([
      ["exec_command"],
      ["update_plan", "update_plan"],
      ["web_search", "exec_command"],
      ["apply_patch", "exec_command"],
      ["exec_command"],
      [],
    ]);
    expect(all.every(({ calls }) => calls.every(({ output, isHosted }) => isHosted || output !== null))).toBe(
      true,
    );
  });

  it("give each of many calls of one step its own output", async () => {
    const file = join(home, "many.jsonl");
    const count = 4000;
    const items = [
      ...Array.from({ length: count }, (_, at) => ({
        type: "function_call",
        name: "x",
        arguments: "{}",
        call_id: `c${at}`,
      })),
      ...Array.from({ length: count }, (_, at) => ({
        type: "function_call_output",
        output: `${at}`,
        call_id: `c${at}`,
      })),
    ];
    const lines = items.map((payload) => JSON.stringify({ type: "response_item", payload }));
    writeFileSync(file, lines.join("\n"));
    const steps: SessionStep[] = [];
    for await (const step of stepsOf(readSessionLines(file))) steps.push(step);
    expect(steps).toHaveLength(1);
    const [step] = steps;
    if (step?.source !== "agent") throw new Error("they are one response");
    expect(step.calls.every(({ callId, output }) => callId === `c${output}`)).toBe(true);
  });

  it("give an output to the call before it, where a model uses an id twice", async () => {
    const file = join(home, "twice.jsonl");
    const record = (payload: object) => JSON.stringify({ type: "response_item", payload });
    const call = { type: "function_call", name: "shell", arguments: "{}", call_id: "a" };
    const output = (text: string) => ({ type: "function_call_output", call_id: "a", output: text });
    writeFileSync(file, [call, output("1"), call, output("2"), output("3")].map(record).join("\n"));
    expect(agentSteps(await steps(file)).flatMap(({ calls }) => calls.map((one) => one.output))).toEqual([
      "1",
      "2",
    ]);
  });
});

describe("a trajectory in ATIF", () => {
  it("has the fields of the format and keeps its rules, for brig's sessions and Codex's", async () => {
    for (const file of [brigRollout, codexRollout]) {
      const trajectory = await exported(file);
      expect(trajectory.steps.length).toBeGreaterThan(5);
    }
  });

  it("holds calls, outputs, tokens and what the sandbox said", async () => {
    const { agent, steps: all, final_metrics, extra: about, session_id } = await exported(brigRollout);
    expect(session_id).toBe("01900000-0000-7000-8000-000000000001");
    expect(agent).toEqual({ name: "brig", version: "0.1.0", model_name: "gpt-5-test" });
    expect(about).toMatchObject({ cwd: "/home/user/project", sandboxes: [{ image: "brig/base" }] });
    expect(final_metrics).toMatchObject({ total_prompt_tokens: 450, total_completion_tokens: 60 });
    const step = all.find(({ source }) => source === "agent");
    expect(step).toMatchObject({
      message: "I look.",
      reasoning_content: "Thinking",
      tool_calls: [
        { tool_call_id: "c1", function_name: "shell", arguments: { command: ["echo", "hi"] } },
        {
          tool_call_id: "c2",
          function_name: "apply_patch",
          arguments: { input: expect.stringContaining("*** Begin") },
        },
      ],
      observation: {
        results: [
          {
            source_call_id: "c1",
            content: expect.stringContaining("hi"),
            extra: { success: true, duration_ms: 12.5 },
          },
          { source_call_id: "c2" },
        ],
      },
      metrics: { prompt_tokens: 100, completion_tokens: 20, cached_tokens: 40 },
    });
    expect(JSON.stringify(all)).toContain('"type":"image","source":{"media_type":"image/png"');
  });

  it("takes arguments that are no JSON object as a text", async () => {
    const file = join(home, "odd.jsonl");
    const call = (id: string, args: string) =>
      JSON.stringify({
        type: "response_item",
        payload: { type: "function_call", name: "x", arguments: args, call_id: id },
      });
    const deep = `{"a":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    const calls = [call("a", "{not json"), call("b", "[1]"), call("c", "null"), call("d", deep)];
    writeFileSync(file, calls.join("\n"));
    const [step] = (await exported(file)).steps;
    expect(step?.tool_calls?.map((one) => one.arguments)).toEqual([
      { input: "{not json" },
      { input: "[1]" },
      { input: "null" },
      { input: deep },
    ]);
  });

  it("is not made of a file that is no session's", async () => {
    const file = join(home, "none");
    writeFileSync(file, "root:x:0:0\nnobody\n");
    await expect(exported(file)).rejects.toMatchObject({ code: "session.invalid" });
  });
});

describe("a fork", () => {
  const options = () => ({
    home,
    threadId: "01900000-0000-7000-8000-00000000000f",
    version: "0.1.0",
    now: new Date("2026-01-02T03:04:05Z"),
  });

  it("is the same conversation under another id, with the original's named", async () => {
    const forked = await forkSession(brigRollout, options());
    const [original, copy] = [await loadSession(brigRollout), await loadSession(forked.path)];
    expect(copy.items).toEqual(original.items);
    expect(copy.threadId).toBe("01900000-0000-7000-8000-00000000000f");
    expect(copy.meta).toMatchObject({ forked_from_id: original.threadId, base_instructions: "Be good." });
    const copied = await steps(forked.path);
    expect(copied.every(({ isCopied }) => isCopied)).toBe(true);
    expect(copied.map(({ number }) => number)).toEqual(
      (await steps(brigRollout)).map(({ number }) => number),
    );
    expect((await exported(forked.path)).steps.every((step) => step.is_copied_context)).toBe(true);
  });

  it("may end with any step, and then holds that step's outputs and nothing after them", async () => {
    const all = await steps(brigRollout);
    for (const { number } of all) {
      const { path: file } = await forkSession(brigRollout, {
        ...options(),
        threadId: `fork-${number}`,
        atStep: number,
      });
      const copied = await steps(file);
      const comparable = (step: SessionStep) => ({ ...step, lastLine: 0, isCopied: true, timestamp: "" });
      expect(copied.map(comparable)).toEqual(all.slice(0, number).map(comparable));
    }
  });

  it("takes a session of Codex over", async () => {
    const { path: file, forkedFromId } = await forkSession(codexRollout, options());
    expect(forkedFromId).toBe("01a1fbab-d984-7593-ba79-2dd4e89b7d57");
    expect((await loadSession(file)).meta).toMatchObject({ originator: "brig", cwd: "/home/user/project" });
  });

  it("leaves lines out that cannot be read", async () => {
    const file = join(home, "damaged.jsonl");
    writeFileSync(
      file,
      '{"type":"session_meta","payload":{"id":"a"}}\nnot json\n{"type":"brig.x","payload":{}}\n{"torn',
    );
    const { path: copy } = await forkSession(file, options());
    expect((await loadSession(copy)).damage.unreadableLines).toBe(0);
  });

  it("of a step that is not there, or of no session, is refused and leaves nothing", async () => {
    await expect(forkSession(brigRollout, { ...options(), atStep: 99 })).rejects.toMatchObject({
      code: "usage.invalid",
      hint: expect.stringContaining("it has 9"),
    });
    writeFileSync(join(home, "none"), "{}\n");
    await expect(forkSession(join(home, "none"), options())).rejects.toMatchObject({
      code: "session.invalid",
    });
    await expect(loadSession(join(home, "sessions"))).rejects.toThrow();
  });
});
