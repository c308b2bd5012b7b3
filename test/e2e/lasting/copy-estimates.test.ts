import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { lastingPlace, upIn } from "../../support/lasting.js";

/** So slow on every machine that somebody waits for each of these copies. */
const SLOW = ["--cpus", "0.1"];

it("fork, apply, undo and stop say how many of the changed files are copied, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one", ...SLOW);
  const inside = async (script: string, ...how: string[]) => {
    const { exitCode, stderr } = await place.run("exec", ...how, "--in", "one", "--", "sh", "-c", script);
    expect(exitCode, stderr).toBe(0);
  };
  const shown = async (text: RegExp, ...args: string[]) => {
    const terminal = await place.terminal(args);
    await terminal.waitForScreen(text);
    expect((await terminal.end()).exitStatus, args.join(" ")).toBe(0);
    // What was drawn over is gone from the screen, and nothing of it is above the result.
    expect(terminal.screen.rows.join("\n")).not.toMatch(/ of \d+ files/);
  };
  await inside("mkdir d e; cd d; seq 5000 | split -l 1 -a 4; cd ../e; seq 2000 | split -l 1 -a 4");
  await shown(/copying the workspace of one, \d+ of 7000 files, .* left/, "fork", "one", "--name", "two");
  await shown(/applying the changes, \d+ of 2000 files, .* left/, "apply", "one", "e");
  expect(await readdir(join(place.workspace, "e"))).toHaveLength(2000);
  await inside("rm d/xa[b-d]*");
  await shown(/taking back the changes, \d+ of 2028 files, .* left/, "undo", "one");
  await inside("mkdir g; cd g; seq 3000 | split -l 1 -a 4; touch done; sleep 1000", "--detach");
  await expect
    .poll(() => place.run("exec", "--in", "one", "--", "test", "-e", "g/done"), { timeout: 60_000 })
    .toMatchObject({ exitCode: 0 });
  await shown(/ending one, \d+ of \d+ files, .* left/, "stop", "one");
}, 600_000);

it("the end of a session says how many of its changes are stored, and how long the rest may take", async () => {
  const place = await lastingPlace();
  const script = join(place.workspace, "../play.json");
  const write = { exec_command: { cmd: "mkdir d; cd d; seq 4000 | split -l 1 -a 4", yield_time_ms: 30_000 } };
  await writeFile(script, JSON.stringify({ steps: [{ calls: [write] }, { text: "Written." }] }));
  const flags = ["--script", script, "--workspace", "overlay", ...SLOW];
  const run = await place.terminal(["run", ...flags, "write"]);
  await run.waitForScreen(/ending the session, \d+ of \d+ files, .* left/);
  expect((await run.end()).exitStatus).toBe(0);
  const left = run.screen.history.join("\n");
  expect(left).toMatch(/4001 changed paths are not applied yet[\s\S]*Written\./);
  expect(left).not.toContain("ending the session");
  const conversation = await place.terminal([...flags, "write"]);
  await conversation.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*● Written\.[\s\S]*\n›\s*\n/);
  conversation.type("\x04");
  await conversation.waitForScreen(/closing the sandbox, \d+ of \d+ files, .* left/);
  expect((await conversation.end()).exitStatus).toBe(0);
}, 600_000);
