import { existsSync } from "node:fs";
import { mkdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { SessionRecord } from "../../../../../src/services/wrap/sessions/session-record.js";
import {
  listSessions,
  openSession,
  removeSession,
  reopenSession,
} from "../../../../../src/services/wrap/sessions/wrapped-sessions.js";
import { temporaryDirectory } from "../../../../support/sandbox.js";

const record: SessionRecord = {
  agent: "codex",
  command: ["codex", "go"],
  directory: "/repo",
  flags: { network: "none" },
  isConfigured: true,
  createdAt: "2026-01-02T03:04:05.000Z",
  usedAt: "2026-01-02T03:04:05.000Z",
  exitCode: null,
};

async function brigHome(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  return directory.path;
}

describe("named sessions", () => {
  it("keep their record and a home that only the user can read", async () => {
    const home = await brigHome();
    {
      using session = await openSession(home, "work");
      expect(session.record).toBeNull();
      await session.save(record);
      expect((await stat(session.home)).mode & 0o777).toBe(0o700);
      expect(await listSessions(home)).toMatchObject([
        { name: "work", isRunning: true, record, home: session.home },
      ]);
    }
    using again = await reopenSession(home, "work");
    expect(again.record).toEqual(record);
  });

  it("are used by one process at a time", async () => {
    const home = await brigHome();
    using session = await openSession(home, "work");
    await session.save(record);
    await expect(openSession(home, "work")).rejects.toMatchObject({ code: "session.busy" });
    await expect(removeSession(home, "work")).rejects.toMatchObject({ code: "session.busy" });
  });

  it("leave nothing if they could not begin", async () => {
    const home = await brigHome();
    (await openSession(home, "work"))[Symbol.dispose]();
    expect(existsSync(join(home, "wrapped", "work"))).toBe(false);
    expect(await listSessions(home)).toEqual([]);
  });

  it.each(["", ".", "..", "a/b", "-a", "a b", "a\n", "x".repeat(65)])(
    "cannot have the name %j",
    async (name) => {
      const home = await brigHome();
      await expect(openSession(home, name)).rejects.toMatchObject({ code: "usage.invalid" });
      await expect(removeSession(home, name)).rejects.toMatchObject({ code: "usage.invalid" });
    },
  );

  it("are removed with their home, and no link in it is followed", async () => {
    const home = await brigHome();
    const kept = join(home, "kept");
    await mkdir(kept);
    await writeFile(join(kept, "file"), "");
    {
      using session = await openSession(home, "work");
      await session.save(record);
      await symlink(kept, join(session.home, "link"));
    }
    await removeSession(home, "work");
    expect(existsSync(join(home, "wrapped", "work"))).toBe(false);
    expect(existsSync(join(kept, "file"))).toBe(true);
    await expect(reopenSession(home, "work")).rejects.toMatchObject({ code: "session.unknown" });
    await expect(removeSession(home, "work")).rejects.toMatchObject({ code: "session.unknown" });
  });

  it("with a record that cannot be read are listed, and not opened", async () => {
    const home = await brigHome();
    const file = join(home, "wrapped", "work", "session.json");
    await mkdir(join(file, ".."), { recursive: true });
    for (const text of ["{", "{}", JSON.stringify({ version: 2, ...record })]) {
      await writeFile(file, text);
      await expect(openSession(home, "work")).rejects.toMatchObject({ code: "session.invalid" });
      expect(await listSessions(home)).toMatchObject([{ name: "work", isRunning: false, record: null }]);
    }
  });
});
