import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  findLastSession,
  findSession,
  findSessionFiles,
  sessionPages,
  summarise,
  summariseAll,
} from "../../../../../src/agent/session/read/session-index.js";
import { createLock, readCurrentProcess } from "../../../../../src/lib/file-lock.js";

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

interface Written {
  id: string;
  cwd?: string;
  /** Seconds after the others' time. */
  at?: number;
  records?: object[];
}

const event = (type: string, more: object = {}) => ({ type: "event_msg", payload: { type, ...more } });
const said = (message: string) => event("user_message", { message });
const turn = (model: string) => ({ type: "turn_context", payload: { model } });

function write({ id, cwd = "/w", at = 0, records = [] }: Written): string {
  const folder = join(home, "sessions/2026/01/02");
  mkdirSync(folder, { recursive: true });
  const path = join(folder, `rollout-2026-01-02T03-04-05-${id}.jsonl`);
  const meta = { type: "session_meta", payload: { id, cwd, timestamp: "2026-01-02T03:04:05Z" } };
  writeFileSync(path, [meta, ...records].map((record) => `${JSON.stringify(record)}\n`).join(""));
  const time = new Date(Date.UTC(2026, 0, 3, 0, 0, at));
  utimesSync(path, time, time);
  return path;
}

async function summary(id: string) {
  const { processes } = await readCurrentProcess();
  return await summarise(await findSession(home, id), processes);
}

describe("finding a session", () => {
  it("takes an id, or the start of one that only one has", async () => {
    write({ id: "0190aaaa-1" });
    const path = write({ id: "0190aabb-2" });
    expect((await findSession(home, "0190aabb-2")).path).toBe(path);
    expect((await findSession(home, "0190AAB")).path).toBe(path);
  });

  it("prefers the whole id to others that start with it", async () => {
    const path = write({ id: "abc" });
    write({ id: "abcd" });
    expect((await findSession(home, "abc")).path).toBe(path);
  });

  it("names those that a start fits, where it fits several", async () => {
    write({ id: "0190aaaa-1" });
    write({ id: "0190aabb-2" });
    await expect(findSession(home, "0190")).rejects.toMatchObject({
      code: "usage.invalid",
      message: expect.stringMatching(/^2 sessions start with "0190": .*0190aaaa-1/),
    });
  });

  it("suggests one where there is none, even where there are no sessions at all", async () => {
    await expect(findSession(home, "")).rejects.toMatchObject({ code: "session.unknown" });
    write({ id: "0190aaaa-1111" });
    await expect(findSession(home, "0190aaba-1111")).rejects.toMatchObject({
      code: "session.unknown",
      hint: "did you mean 0190aaaa-1111?",
    });
    await expect(findSession(home, "../../etc/passwd")).rejects.toMatchObject({ code: "session.unknown" });
  });

  it("finds the last one of a directory, or of all", async () => {
    write({ id: "a", cwd: "/one", at: 1 });
    write({ id: "b", cwd: "/two", at: 3 });
    write({ id: "c", cwd: "/one", at: 2 });
    expect((await findLastSession(home, { cwd: "/one" }))?.id).toBe("c");
    expect((await findLastSession(home, { cwd: null }))?.id).toBe("b");
    expect(await findLastSession(home, { cwd: "/three" })).toBeNull();
  });

  it("looks at nothing that is not a session's file", async () => {
    write({ id: "a" });
    writeFileSync(join(home, "sessions/2026/01/02/notes.jsonl"), "");
    writeFileSync(join(home, "sessions/rollout-2026-01-02T03-04-05-x.jsonl"), "");
    mkdirSync(join(home, "sessions/2026/01/02/rollout-2026-01-02T03-04-05-d.jsonl"));
    expect((await findSessionFiles(home)).map(({ id }) => id)).toEqual(["a"]);
  });
});

describe("what is said of a session", () => {
  it("is where, what, with whom and how it ended", async () => {
    write({
      id: "a",
      records: [
        turn("m-1"),
        said("Fix\nit."),
        event("task_complete"),
        { type: "brig.turn", payload: { number: 7, status: "completed", model: "m-2" } },
      ],
    });
    expect(await summary("a")).toMatchObject({
      id: "a",
      cwd: "/w",
      startedAt: "2026-01-02T03:04:05Z",
      prompt: "Fix\nit.",
      turns: 7,
      model: "m-2",
      status: "completed",
    });
  });

  it.each([
    [[event("task_started"), event("turn_aborted")], "interrupted"],
    [[event("task_started"), event("error", { message: "x" })], "failed"],
    [[event("task_started"), event("task_complete"), event("task_started")], "broken off"],
    [[], "broken off"],
  ])("is how it ended: %j is %s", async (records, status) => {
    write({ id: "a", records });
    expect((await summary("a")).status).toBe(status);
  });

  it("is that it is in use while a living process writes it, and no longer", async () => {
    const path = write({ id: "a", records: [event("task_complete")] });
    const claimant = await readCurrentProcess();
    const claim = createLock(path, claimant);
    expect((await summary("a")).status).toBe("in use");
    claim.release();
    createLock(path, { ...claimant, owner: { ...claimant.owner, startedAt: "1" } });
    expect((await summary("a")).status).toBe("completed");
  });

  it("is that it is unreadable where it is", async () => {
    const path = write({ id: "a" });
    writeFileSync(path, "\0\0\0\0not a session");
    expect(await summary("a")).toMatchObject({ status: "unreadable", prompt: null, turns: 0 });
  });

  it("comes from both ends of a long file, whose middle is not read", async () => {
    const path = write({ id: "a", records: [turn("m-1"), said("Begin.")] });
    const filler = `${JSON.stringify(event("x", { ballast: "é".repeat(5000) }))}\n`;
    for (let n = 0; n < 100; n++) appendFileSync(path, filler);
    for (const record of [turn("m-2"), event("task_complete")])
      appendFileSync(path, `${JSON.stringify(record)}\n`);
    expect(await summary("a")).toMatchObject({
      prompt: "Begin.",
      model: "m-2",
      status: "completed",
      turns: null,
    });
  });
});

it("tells of many sessions at once, in their order", async () => {
  for (let n = 0; n < 200; n++) write({ id: `s-${n}`, at: n % 60, records: [said(`prompt ${n}`)] });
  const { processes } = await readCurrentProcess();
  const files = await findSessionFiles(home);
  const all = await summariseAll(files, processes);
  expect(all.map(({ id }) => id)).toEqual(files.map(({ id }) => id));
  expect(all.every(({ id, prompt }) => prompt === id.replace("s-", "prompt "))).toBe(true);
});

it("reads of a thousand long sessions less than a tenth", async () => {
  const filler = `${JSON.stringify(event("x", { ballast: "y".repeat(100_000) }))}\n`.repeat(40);
  const path = write({ id: "long", records: [said("x")] });
  appendFileSync(path, filler);
  const { processes } = await readCurrentProcess();
  const file = await findSession(home, "long");
  const before = readBytes();
  for (let n = 0; n < 1000; n++) await summarise(file, processes);
  // The middle of the file is neither read nor parsed.
  expect(readBytes() - before).toBeLessThan(1000 * file.sizeBytes * 0.1);
});

describe("pages of sessions", () => {
  it("have those of a directory that somebody began, the last changed first, without agents", async () => {
    write({ id: "old", at: 1, records: [said("first of all")] });
    write({ id: "new", at: 9, records: [said("in the end")] });
    write({ id: "other", cwd: "/elsewhere", at: 5, records: [said("there")] });
    write({ id: "silent", at: 7 });
    const agent = write({ id: "agent", at: 8, records: [said("as an agent")] });
    const text = readFileSync(agent, "utf8");
    writeFileSync(agent, text.replace('"cwd":', '"parent_thread_id":"new","git":{"branch":3},"cwd":'));
    const late = {
      id: "late",
      at: 3,
      records: [{ ...event("x"), ballast: "y".repeat(60_000) }, said("late")],
    };
    write(late);
    const ids = async (cwd: string | null) => {
      const found = [];
      for await (const page of sessionPages(home, { cwd })) found.push(...page);
      return found.map(({ id, prompt }) => [id, prompt]);
    };
    const own = [
      ["new", "in the end"],
      ["late", "late"],
      ["old", "first of all"],
    ];
    expect(await ids("/w")).toEqual(own);
    expect(await ids(null)).toEqual([own[0], ["other", "there"], ...own.slice(1)]);
  });

  it("are read only when they are asked for: the first one of ten thousand costs next to nothing", async () => {
    const line = JSON.stringify({ ...said("x"), ballast: "y".repeat(8000) });
    for (let n = 0; n < 10_000; n++) write({ id: `s-${n}`, at: n, records: [JSON.parse(line)] });
    const before = readBytes();
    const pages = sessionPages(home, { cwd: null });
    const { value } = await pages.next();
    await pages.return(undefined);
    expect(value?.[0]).toMatchObject({ id: "s-9999", prompt: "x" });
    expect(value?.length).toBeLessThanOrEqual(64);
    expect(readBytes() - before).toBeLessThan(10_000 * line.length * 0.02);
  });
});

/** By this process so far. */
function readBytes(): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);
}
