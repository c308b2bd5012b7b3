import { mkdir, realpath, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Command } from "commander";
import { beforeEach, expect, it } from "vitest";
import { defineReplay } from "../../../../src/cli/commands/replay.js";
import { defineSessions } from "../../../../src/cli/commands/sessions.js";
import type { CliContext } from "../../../../src/command/context.js";
import { temporaryFolder } from "../../../support/batch-runs.js";
import { type TestContext, testContext } from "../../../support/cli-context.js";

let context: TestContext;
let home: string;

beforeEach(async () => {
  home = await temporaryFolder();
  const here = await realpath(await temporaryFolder());
  const given = testContext({ variables: { BRIG_HOME: home } });
  context = Object.assign(given, { cwd: here }) satisfies CliContext;
  const folder = join(home, "sessions/2026/01/02");
  await mkdir(folder, { recursive: true });
  const sessions = [
    ["aaaa", here],
    ["bbbb", here],
    ["cccc", "/elsewhere"],
  ] as const;
  for (const [at, [id, cwd]] of sessions.entries()) {
    const path = join(folder, `rollout-2026-01-02T03-04-05-${id}.jsonl`);
    const records = [
      { type: "session_meta", payload: { id, cwd, timestamp: "2026-01-02T03:04:05Z" } },
      { type: "event_msg", payload: { type: "user_message", message: `said in ${id}` } },
    ];
    await writeFile(path, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
    await utimes(path, 1_000_000 + at, 1_000_000 + at);
  }
});

async function brig(...words: string[]): Promise<string> {
  const program = new Command().exitOverride();
  defineSessions(program.command("sessions"), context);
  defineReplay(program.command("replay"), context);
  await program.parseAsync(words, { from: "user" });
  return context.written().stdout;
}

it("--last shows the most recent session of this directory", async () => {
  expect(await brig("sessions", "show", "--last")).toContain("bbbb");
});

it.each(["steps", "egress", "proof"])("--last stands for the session of sessions %s", async (command) => {
  await brig("sessions", command, "--last");
  expect(context.exitStatus).toBe(0);
});

it("--last stands for the session that is copied or exported", async () => {
  expect(await brig("sessions", "export", "--last")).toContain("bbbb");
  await brig("sessions", "fork", "--last");
  expect(await brig("sessions", "list", "--json")).toContain('"forkedFromId": "bbbb"');
});

it("--last deletes the most recent session of this directory alone", async () => {
  await brig("sessions", "delete", "--last", "--yes");
  expect(context.written().stderr).toContain("deleted bbbb");
  expect(await brig("sessions", "show", "--last")).toContain("aaaa");
});

it("--last stands for the session that is run again", async () => {
  await expect(brig("replay", "--last")).rejects.toMatchObject({
    message: expect.stringContaining("made no tool calls"),
  });
});

it.each([
  [["sessions", "show"], "no session given"],
  [["sessions", "show", "aaaa", "--last"], "--last cannot be combined with a session's id"],
  [["sessions", "delete"], "no session given"],
  [["sessions", "delete", "aaaa", "--last"], "--last cannot be combined with a session's id"],
  [["replay"], "no session given"],
  [["replay", "aaaa", "--last"], "--last cannot be combined with a session's id"],
])("%j is refused", async (words, message) => {
  await expect(brig(...words)).rejects.toMatchObject({ code: "usage.invalid", message });
});

it("--last is refused where no session has run", async () => {
  Object.assign(context, { cwd: home });
  await expect(brig("sessions", "show", "--last")).rejects.toMatchObject({ code: "session.unknown" });
});
