import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openSessionFile } from "../../../src/agent/session-file.js";

const now = () => new Date(2026, 10, 5, 9, 8, 7, 654);
let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

describe("openSessionFile", () => {
  it("names the file after the local time and the thread, in a folder for the day", () => {
    const log = openSessionFile({ home, threadId: "abc", now });
    expect(log.path).toBe(join(home, "sessions/2026/11/05/rollout-2026-11-05T09-08-07-abc.jsonl"));
  });

  it("writes one object to a line, with the time in UTC", () => {
    const log = openSessionFile({ home, threadId: "abc", now });
    log.append({ type: "event_msg", payload: { type: "task_started", text: "a\nb" } });
    log.append({ type: "brig.call", payload: { call_id: "c" } });
    log.close();
    const lines = readFileSync(log.path ?? "", "utf8").split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[2]).toBe("");
    expect(JSON.parse(lines[0] ?? "")).toEqual({
      timestamp: now().toISOString(),
      type: "event_msg",
      payload: { type: "task_started", text: "a\nb" },
    });
  });

  it("has every line on disk as soon as it is appended", () => {
    const log = openSessionFile({ home, threadId: "abc", now });
    log.append({ type: "event_msg", payload: {} });
    expect(readFileSync(log.path ?? "", "utf8")).toMatch(/\}\n$/);
    log.close();
  });

  it("is the user's alone", () => {
    const log = openSessionFile({ home, threadId: "abc", now });
    expect(statSync(log.path ?? "").mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "sessions")).mode & 0o777).toBe(0o700);
  });

  it("never overwrites a file that is there", () => {
    openSessionFile({ home, threadId: "abc", now });
    expect(() => openSessionFile({ home, threadId: "abc", now })).toThrow(
      expect.objectContaining({ code: "session.invalid" }),
    );
  });

  it("only ever appends: what another process added stays", () => {
    const log = openSessionFile({ home, threadId: "abc", now });
    log.append({ type: "event_msg", payload: { n: 1 } });
    appendFileSync(log.path ?? "", "torn line without an end\n");
    log.append({ type: "event_msg", payload: { n: 2 } });
    const lines = readFileSync(log.path ?? "", "utf8")
      .trim()
      .split("\n");
    expect(lines.map((line) => line.includes('"n":'))).toEqual([true, false, true]);
  });

  it("starts a new line after one that could not be written as a whole", () => {
    const sizes = [1000, 20, null, 7, 1000];
    const write = (file: number, bytes: Uint8Array, at: number) => {
      const size = sizes.shift();
      if (size === null) throw new Error("no space left");
      return writeSync(file, bytes, at, Math.min(bytes.length - at, size ?? 1000));
    };
    const log = openSessionFile({ home, threadId: "abc", now, write });
    log.append({ type: "event_msg", payload: { n: 1 } });
    expect(() => {
      log.append({ type: "event_msg", payload: { n: 2 } });
    }).toThrow("no space left");
    log.append({ type: "event_msg", payload: { n: 3 } });
    const lines = readFileSync(log.path ?? "", "utf8")
      .trimEnd()
      .split("\n");
    expect(lines).toHaveLength(3);
    expect(lines[1]).toHaveLength(20);
    expect([lines[0], lines[2]].map((line) => JSON.parse(line ?? "").payload.n)).toEqual([1, 3]);
  });

  it("says where it could not be created", () => {
    const file = join(home, "file");
    writeFileSync(file, "");
    expect(() => openSessionFile({ home: file, threadId: "abc", now })).toThrow(
      `cannot create the session file ${file}/sessions/`,
    );
  });
});
