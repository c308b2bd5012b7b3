import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isToolCall, type ResponseItem, textMessage } from "../../../../../src/agent/model/items.js";
import { atifDocument } from "../../../../../src/agent/session/export-atif.js";
import { readSessionLines } from "../../../../../src/agent/session/read/session-lines.js";
import { describeDamage, loadSession } from "../../../../../src/agent/session/read/session-reader.js";
import { stepsOf } from "../../../../../src/agent/session/read/session-steps.js";
import {
  continueSessionFile,
  openSessionFile,
  type SessionRecord,
} from "../../../../../src/agent/session/write/session-file.js";
import { responseItem } from "../../../../../src/agent/session/write/session-records.js";
import { normalised } from "../../../../../src/agent/turn/history.js";
import { runs } from "../../../../support/fuzz.js";
import { heldDuring } from "../../../../support/garbage.js";
import { sampled } from "../../../../support/samples.js";

const writer = fileURLToPath(new URL("../../../../fixtures/session-writer.ts", import.meta.url));
const codexRollout = fileURLToPath(
  new URL("../../../../fixtures/rollouts/codex-0.169.jsonl", import.meta.url),
);
const now = () => new Date("2026-01-02T03:04:05.678Z");
let home = "";
let file = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
  file = join(home, "rollout.jsonl");
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

const meta = {
  type: "session_meta",
  payload: { id: "t-1", cwd: "/w", base_instructions: { text: "Be good." } },
};
const user = (text: string) => item(textMessage("user", text));
const said = (text: string) =>
  item({ type: "message", role: "assistant", content: [{ type: "output_text", text }] });
const event = (payload: object) => ({ type: "event_msg", payload });

function item(response: ResponseItem): object {
  return { ...responseItem(response) };
}

function write(...records: (object | string)[]): void {
  const lines = records.map((record) =>
    typeof record === "string" ? record : JSON.stringify({ timestamp: now().toISOString(), ...record }),
  );
  writeFileSync(file, `${lines.join("\n")}\n`);
}

async function loaded() {
  return await loadSession(file);
}

async function texts(): Promise<string[]> {
  const { items } = await loaded();
  return items.map((one) =>
    one.type === "message" ? one.content.map((part) => ("text" in part ? part.text : "")).join("") : one.type,
  );
}

describe("loading a session", () => {
  it("may begin with a byte order mark, as after an editor", async () => {
    write(meta, user("hi"));
    writeFileSync(file, `\ufeff${readFileSync(file, "utf8")}`);
    expect(await loaded()).toMatchObject({ meta: { id: "t-1" }, damage: { unreadableLines: 0 } });
  });

  it("gives the items in order, the id, the instructions and what the last turn ran with", async () => {
    const turn = (model: string) => ({ type: "turn_context", payload: { model, cwd: "/w", extra: 1 } });
    write(meta, turn("a"), user("one"), said("1"), turn("b"), user("two"), said("2"));
    expect(await texts()).toEqual(["one", "1", "two", "2"]);
    expect(await loaded()).toMatchObject({
      threadId: "t-1",
      meta: { cwd: "/w", base_instructions: "Be good." },
      lastTurn: { model: "b" },
      turns: 2,
      damage: { unreadableLines: 0, hasTornEnd: false, missingRecords: 0 },
    });
  });

  it("says which model it used last, and drops the reasoning that another provider has encrypted", async () => {
    const turn = (model: string, effort?: string) => ({ type: "turn_context", payload: { model, effort } });
    const model = (payload: unknown) => ({ type: "brig.model", payload });
    const reasoning = item({ type: "reasoning", summary: [], encrypted_content: "x" });
    const begun = { ...meta, payload: { ...meta.payload, model_provider: "one" } };
    write(begun, turn("a", "low"), user("one"), reasoning, said("1"));
    const before = { provider: "one", name: "a", effort: "low", isChosen: false };
    expect((await loaded()).model).toEqual(before);
    expect(await texts()).toEqual(["one", "reasoning", "1"]);
    const records = [begun, turn("a", "low"), user("one"), reasoning, said("1")];
    write(...records, model({ provider: "one", model: "b" }));
    expect((await loaded()).model).toEqual({ provider: "one", name: "b", effort: null, isChosen: true });
    expect(await texts()).toEqual(["one", "reasoning", "1"]);
    write(...records, model({ provider: "two", model: "c", effort: "high" }), turn("c", "high"), user("two"));
    expect((await loaded()).model).toEqual({ provider: "two", name: "c", effort: "high", isChosen: true });
    expect(await texts()).toEqual(["one", "1", "two"]);
    write(
      ...records,
      model({ provider: 1 }),
      model("x"),
      model({ provider: "y".repeat(10_000), model: "z" }),
    );
    expect((await loaded()).model).toEqual(before);
  });

  it("takes the id of the first session_meta: a fork holds its original's too", async () => {
    write(meta, { type: "session_meta", payload: { id: "t-0" } }, user("x"));
    expect((await loaded()).threadId).toBe("t-1");
  });

  it.each([
    ["an empty file", "", "empty session file"],
    ["only blank lines", "\n  \n\n", "empty session file"],
    ["no session_meta", '{"type":"event_msg","payload":{}}\n', "failed to parse thread ID from rollout file"],
    ["a session_meta without an id", '{"type":"session_meta","payload":{}}\n', "failed to parse thread ID"],
    ["a picture", "\x89PNG\r\n\x1a\n\0\0", "failed to parse thread ID"],
  ])("refuses %s", async (_, content, message) => {
    writeFileSync(file, content);
    await expect(loaded()).rejects.toMatchObject({
      code: "session.invalid",
      message: expect.stringContaining(message),
    });
  });

  it("says of a file that is not there, or a directory, that it cannot be read", async () => {
    for (const path of [join(home, "missing"), home])
      await expect(loadSession(path)).rejects.toMatchObject({
        code: "session.invalid",
        message: expect.stringContaining("cannot be read"),
      });
  });

  it("skips blank lines, and counts and skips lines that it cannot understand", async () => {
    write(
      meta,
      "",
      "not json",
      user("a"),
      '{"type":5}',
      "[]",
      "null",
      '"x"',
      "\u0000\u0000",
      `{"type":"response_item","payload":{"type":"x","y":${"[".repeat(50_000)}${"]".repeat(50_000)}}}`,
      `{"type":"brig.call","payload":{"y":${'{"z":'.repeat(50_000)}1${"}".repeat(50_000)}}}`,
      user("b"),
      "  ",
    );
    expect(await texts()).toEqual(["a", "b"]);
    const { damage } = await loaded();
    expect(damage).toEqual({ unreadableLines: 8, hasTornEnd: false, missingRecords: 0 });
    expect(describeDamage(damage)).toBe("the session file is damaged: 8 lines cannot be read");
  });

  it("skips an item that has lost its parts, and lines of kinds it does not know without a word", async () => {
    const lame = { type: "response_item", payload: { type: "function_call", name: "x" } };
    write(meta, { type: "world_state", payload: {} }, { type: "brig.new", payload: {} }, lame, user("a"));
    expect(await texts()).toEqual(["a"]);
    expect((await loaded()).damage.unreadableLines).toBe(1);
  });

  it("says that records are missing where the writer said so", async () => {
    write(meta, { type: "brig.gap", payload: { lost_records: 3 } }, { type: "brig.gap", payload: {} });
    const { damage } = await loaded();
    expect(describeDamage(damage)).toBe("the session file is damaged: 4 records could not be written");
  });

  it("starts from the newest replacement history", async () => {
    const compacted = (...texts: string[]) => ({
      type: "compacted",
      payload: { message: "sum", replacement_history: texts.map((text) => textMessage("user", text)) },
    });
    write(meta, user("a"), compacted("a'"), said("1"), compacted("a''", "b''"), said("2"), user("c"));
    expect(await texts()).toEqual(["a''", "b''", "2", "c"]);
    expect((await loaded()).turns).toBe(2);
  });

  it("rebuilds one without a replacement from what the user said and the summary", async () => {
    write(
      meta,
      user("<environment_context>x</environment_context>"),
      user("one"),
      said("1"),
      { type: "compacted", payload: { message: "It was about one." } },
      said("2"),
    );
    const [one, summary, two] = await texts();
    expect(one).toBe("one");
    expect(summary).toContain("It was about one.");
    expect(two).toBe("2");
  });

  it("takes back turns that were rolled back", async () => {
    const back = (turns: number) => event({ type: "thread_rolled_back", num_turns: turns });
    write(meta, user("a"), said("1"), user("b"), said("2"), back(1), user("c"), said("3"));
    expect(await texts()).toEqual(["a", "1", "c", "3"]);
    write(meta, user("a"), said("1"), user("b"), back(0), back(1));
    expect(await texts()).toEqual(["a", "1"]);
    write(meta, item(textMessage("developer", "rules")), user("a"), said("1"), user("b"), back(9));
    expect(await texts()).toEqual(["rules"]);
  });

  it("adds up nothing of usage: the last total is the total", async () => {
    const usage = (total: number) => ({ input_tokens: total, output_tokens: 1 });
    const count = (total: number) =>
      event({ type: "token_count", info: { total_token_usage: usage(total), last_token_usage: usage(1) } });
    write(meta, count(5), event({ type: "token_count", info: null }), count(9));
    expect((await loaded()).usage).toMatchObject({ inputTokens: 9, outputTokens: 1, cachedInputTokens: 0 });
  });

  it("is not impressed by names that objects have", async () => {
    write(
      meta,
      '{"type":"event_msg","payload":{"type":"constructor"}}',
      '{"type":"__proto__","payload":{"__proto__":{"polluted":1}}}',
      '{"type":"response_item","payload":{"type":"toString","__proto__":{"x":1}}}',
      user("a"),
    );
    expect((await texts()).at(-1)).toBe("a");
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  it("reads what Codex wrote, and does not take its own notes on items for a part of them", async () => {
    const session = await loadSession(codexRollout);
    expect(session).toMatchObject({
      meta: { originator: "codex_exec", cwd: "/home/user/project" },
      lastTurn: { model: "gpt-5.1-codex", sandbox_policy: { type: "danger-full-access" } },
      turns: 1,
      usage: { inputTokens: 600, cachedInputTokens: 240, outputTokens: 120, reasoningOutputTokens: 30 },
      damage: { unreadableLines: 0 },
    });
    expect(session.items.filter(isToolCall)).toHaveLength(7);
    expect(normalised(session.items)).toEqual(session.items);
    expect(JSON.stringify(session.items)).not.toContain("metadata_passthrough");
  });
});

describe("a damaged session", () => {
  it("is read or refused, whatever bytes are changed, cut out or put in", async () => {
    const bytes = readFileSync(codexRollout);
    const change = fc.record({
      at: fc.nat(bytes.length - 1),
      removed: fc.nat(200),
      put: fc.uint8Array({ maxLength: 40 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 8 }), async (changes) => {
        let mutated = bytes;
        for (const { at, removed, put } of changes)
          mutated = Buffer.concat([mutated.subarray(0, at), put, mutated.subarray(at + removed)]);
        writeFileSync(file, mutated);
        const outcome = await loadSession(file).catch((error: unknown) => error);
        if (outcome instanceof Error) expect(outcome).toMatchObject({ code: "session.invalid" });
        for await (const _ of stepsOf(readSessionLines(file)));
        for await (const _ of atifDocument(file));
      }),
      { numRuns: runs({ short: 40, deep: 600 }) },
    );
  });
});

describe("a session's size", () => {
  it("does not matter to reading it: a line of 200 MB is skipped, and one line is held at a time", async () => {
    write(meta);
    truncateSync(file, 200 * 1024 * 1024);
    appendFileSync(file, `\n${JSON.stringify(user("after"))}\n`);
    const held = await heldDuring(async () => {
      const { items, damage } = await loaded();
      expect(items).toEqual([textMessage("user", "after")]);
      expect(damage.unreadableLines).toBe(1);
    });
    expect(held).toBeLessThan(100 * 1024 * 1024);
  });

  it("ends the reading when the reader is told to stop", async () => {
    write(meta, user("a"));
    const lines = readSessionLines(file, { signal: AbortSignal.abort(new Error("enough")) });
    await expect(
      (async () => {
        for await (const _ of lines);
      })(),
    ).rejects.toThrow("enough");
  });
});

const anyItem: fc.Arbitrary<ResponseItem> = fc.oneof(
  fc.record({
    type: fc.constant("message" as const),
    role: fc.constantFrom("user" as const, "assistant" as const, "developer" as const),
    content: fc.array(
      fc.record({ type: fc.constant("input_text" as const), text: fc.string({ unit: "binary" }) }),
    ),
  }),
  fc.record({
    type: fc.constant("function_call" as const),
    name: fc.string(),
    arguments: fc.json(),
    call_id: fc.uuid(),
  }),
  fc.record({
    type: fc.constant("function_call_output" as const),
    call_id: fc.uuid(),
    output: fc.oneof(
      fc.string({ unit: "binary" }),
      fc.array(
        fc.record({ type: fc.constant("input_text" as const), text: fc.string({ unit: "grapheme" }) }),
      ),
    ),
  }),
  fc.record({
    type: fc.constant("custom_tool_call" as const),
    name: fc.string(),
    input: fc.string(),
    call_id: fc.uuid(),
  }),
  fc.record({
    type: fc.constant("reasoning" as const),
    summary: fc.array(fc.record({ type: fc.constant("summary_text" as const), text: fc.string() })),
    encrypted_content: fc.string(),
  }),
);

describe("what was written", () => {
  it("is read again as it was, whatever it is", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyItem), async (items) => {
        const log = await openSessionFile({ home, threadId: fc.sample(fc.uuid(), 1)[0] ?? "", now });
        log.append({ type: "session_meta", payload: { id: "t-1" } });
        for (const one of items) log.append(responseItem(one));
        log.close();
        const session = await loadSession(log.path ?? "");
        // -0 is 0 in JSON, and a lone surrogate comes back as it was.
        expect(session.items).toEqual(JSON.parse(JSON.stringify(items)));
      }),
      { numRuns: runs({ short: 20, deep: 200 }) },
    );
  });

  it("is all there but at most the last line when the file is cut off at any byte, and can be gone on with", async () => {
    const records: SessionRecord[] = [
      { type: "session_meta", payload: { id: "t-1", cwd: "/w" } },
      ...["ä", "日本", "😀\u0000", "x\ny", ""].map((text) => responseItem(textMessage("user", text))),
    ];
    const log = await openSessionFile({ home, threadId: "t-1", now });
    for (const record of records) log.append(record);
    log.close();
    const path = log.path ?? "";
    const bytes = readFileSync(path);
    const lineEnds = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at] : []));
    const sizes = [...bytes.keys()].map((at) => at + 1).filter((size) => size > (lineEnds[0] ?? 0));
    const atLineEnds = lineEnds.slice(1).flatMap((end) => [end - 1, end, end + 1]);
    const { seed, some } = sampled(sizes, { short: 60, deep: sizes.length });
    for (const size of [...atLineEnds, ...some]) {
      writeFileSync(path, bytes.subarray(0, size));
      const whole = lineEnds.filter((end) => end <= size).length;
      const { items, damage } = await loadSession(path);
      expect(items.length, `BRIG_TEST_SEED=${seed}`).toBe(whole - 1);
      const isTorn = !lineEnds.includes(size) && !lineEnds.includes(size - 1);
      expect(damage, `BRIG_TEST_SEED=${seed}`).toEqual({
        unreadableLines: isTorn ? 1 : 0,
        hasTornEnd: isTorn,
        missingRecords: 0,
      });
    }
    for (const size of [bytes.length - 5, bytes.length - 1, (lineEnds[2] ?? 0) + 20]) {
      writeFileSync(path, bytes.subarray(0, size));
      const before = (await loadSession(path)).items;
      const more = await continueSessionFile(path, { now });
      more.append(responseItem(textMessage("user", "more")));
      more.close();
      expect((await loadSession(path)).items).toEqual([...before, textMessage("user", "more")]);
    }
    truncateSync(path, 10);
    await expect(loadSession(path)).rejects.toMatchObject({ code: "session.invalid" });
  });

  it("is all there after a kill -9 in the middle of writing, and another process goes on with it", async () => {
    let path = "";
    const written: number[] = [];
    for (const mode of ["new", "continue", "continue"]) {
      const child = spawn(process.execPath, ["--import", "tsx", writer, mode, path === "" ? home : path]);
      let told = "";
      child.stdout.on("data", (chunk: Buffer) => {
        told += chunk.toString();
      });
      while (told.split("\n").length < 60) await sleep(5);
      await sleep(Math.random() * 20);
      child.kill("SIGKILL");
      await once(child, "close");
      const [first = "", ...numbers] = told.trimEnd().split("\n");
      path = first;
      written.push(numbers.length);
      const seen: number[] = [];
      for await (const line of readSessionLines(path)) {
        if (line.kind === "record" && line.record.type === "event_msg")
          seen.push(JSON.parse(line.bytes.toString()).payload.n);
      }
      const sum = written.reduce((a, b) => a + b, 0);
      // A record may be written and not told of, but never told of and not written.
      expect(seen.length).toBeGreaterThanOrEqual(sum);
      written[written.length - 1] = seen.length - (sum - numbers.length);
      expect(
        seen.slice(-numbers.length).every((n, at, all) => at === 0 || n === (all[at - 1] ?? 0) + 1),
      ).toBe(true);
    }
    expect((await loadSession(path)).damage.missingRecords).toBe(0);
    appendFileSync(path, '{"torn');
    expect((await loadSession(path)).damage.hasTornEnd).toBe(true);
  });
});
