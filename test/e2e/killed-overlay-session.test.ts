import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { expect, it } from "vitest";
import { brig, containersOf } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { temporaryDirectory } from "../support/sandbox.js";

it("the changes of a session are there while it runs, and after it was killed", async () => {
  await using folder = await temporaryDirectory();
  const [cwd, home, script] = ["work", "home", "script.yaml"].map((name) => join(folder.path, name)) as [
    string,
    string,
    string,
  ];
  await mkdir(cwd);
  await mkdir(home);
  writeFileSync(join(cwd, "file"), "host\n");
  const call = (command: string) => ({ calls: [{ shell: { command: ["bash", "-c", command] } }] });
  const steps = [
    call("echo agent > file; echo n > new"),
    call("echo lost > lost; sleep 1000"),
    { text: "done" },
  ];
  await writeFile(script, JSON.stringify({ steps }));
  const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "" };
  const args = ["run", "--json", "-a", "never", "--workspace", "overlay", "--script", script, "change it"];
  const session = brig(args, { cwd, env });
  const events = await eventsUntil(session.stdout, "restore_point.created");
  const thread = events[0]?.thread_id ?? "";
  const snapshot = events.at(-1)?.snapshot ?? "";
  const shown = "modified file\nadded    new\n";
  const run = (...rest: string[]) => brigHere(rest, { cwd, env });
  expect((await run("diff", "--name-only")).stdout).toBe(shown);
  session.kill("SIGKILL");
  await session;
  const engine = await testEngine();
  for (const id of await containersOf(session.pid)) await engine.removeContainer(id);
  expect((await run("diff", "--list")).stdout).toContain(snapshot.slice(0, 8));
  expect((await run("diff", "--name-only")).stdout).toBe(shown);
  expect((await run("diff", "--name-only", "--id", thread)).stdout).toBe(shown);
  expect(await run("diff", "--id", "nothing-like-it")).toMatchObject({ exitCode: 2, stdout: "" });
  expect(await run("apply", "--id", thread.slice(0, 13))).toMatchObject({
    exitCode: 0,
    stdout: "file\nnew\n",
  });
  expect(readFileSync(join(cwd, "file"), "utf8")).toBe("agent\n");
  expect(existsSync(join(cwd, "lost"))).toBe(false);
  expect((await run("diff")).stderr).toBe("brig: nothing differs from your files\n");
});

/** The session goes on writing to the stream. */
async function eventsUntil(stream: Readable, type: string): Promise<Record<string, string>[]> {
  const events: Record<string, string>[] = [];
  return await new Promise((resolve) => {
    createInterface({ input: stream }).on("line", (line) => {
      const event = JSON.parse(line) as Record<string, string>;
      events.push(event);
      if (event.type === type) resolve(events.slice());
    });
  });
}
