import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import { listSessions } from "../../../../src/services/acp/past-sessions.js";
import { temporaryDirectory } from "../../../support/sandbox.js";

async function homeWith(count: number): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  const folder = join(directory.path, "sessions", "2026", "01", "02");
  await mkdir(folder, { recursive: true });
  for (let at = 0; at < count; at++) {
    const id = `00000000-0000-7000-8000-${String(at).padStart(12, "0")}`;
    const file = join(folder, `rollout-2026-01-02T03-04-05-${id}.jsonl`);
    const meta = { id, cwd: at % 2 === 0 ? "/even" : "/odd", timestamp: "2026-01-02T03:04:05Z" };
    const lines = [
      { type: "session_meta", payload: meta },
      { type: "event_msg", payload: { type: "user_message", message: `do\n${at}\u001b[2J` } },
    ];
    await writeFile(
      file,
      lines.map((line) => `${JSON.stringify({ timestamp: meta.timestamp, ...line })}\n`).join(""),
    );
    // Many have the same time.
    await utimes(file, 1000, 1000 + Math.floor(at / 40));
  }
  await writeFile(join(folder, "rollout-2026-01-02T03-04-05-broken.jsonl"), "{");
  return directory.path;
}

it("gives every session once, the latest first, page by page", async () => {
  const options = { home: await homeWith(120), processes: await readHostProcesses("test") };
  const seen: string[] = [];
  let cursor: string | null | undefined;
  do {
    const page = await listSessions({ cursor }, options);
    expect(page.sessions.length).toBeLessThanOrEqual(50);
    seen.push(...page.sessions.map(({ sessionId }) => sessionId));
    cursor = page.nextCursor;
  } while (cursor != null);
  expect(seen).toHaveLength(120);
  expect(new Set(seen).size).toBe(120);
  expect(seen.slice(0, 40).every((id) => Number(id.slice(-12)) >= 80)).toBe(true);
});

it("gives those of a directory only, with a title that a display can show", async () => {
  const options = { home: await homeWith(4), processes: await readHostProcesses("test") };
  const { sessions, nextCursor } = await listSessions({ cwd: "/odd" }, options);
  expect(sessions).toMatchObject([
    { cwd: "/odd", title: "do 3␛[2J" },
    { cwd: "/odd", title: "do 1␛[2J" },
  ]);
  expect(nextCursor).toBeUndefined();
});

it.each(["", "x", "1.", "1.../../x", "9".repeat(400)])("refuses %j as a cursor", async (cursor) => {
  const options = { home: "/proc/nowhere", processes: await readHostProcesses("test") };
  await expect(listSessions({ cursor }, options)).rejects.toMatchObject({ code: -32_602 });
});
