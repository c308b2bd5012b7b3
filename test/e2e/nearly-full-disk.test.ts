import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it } from "vitest";
import { program } from "../support/cli.js";
import { temporaryDirectory } from "../support/sandbox.js";

const LIMIT_BYTES = 64 * 1024;

/** The kernel writes no file beyond the limit, and only a part of what goes beyond it, as on a disk that gets full. */
async function limited(args: string[], env: Record<string, string>, kibibytes = LIMIT_BYTES / 1024) {
  const line = `ulimit -f ${kibibytes}; exec "$@"`;
  return await execa("bash", ["-c", line, "bash", process.execPath, program, ...args], {
    env,
    reject: false,
  });
}

async function filesIn(directory: string): Promise<string[]> {
  const all = await readdir(directory, { recursive: true });
  return all.filter((name) => name.endsWith(".jsonl") || name.endsWith(".new"));
}

it("a copy of a session whose last record does not fit is none, and nothing of it stays", async () => {
  await using home = await temporaryDirectory();
  const source = join(home.path, "source");
  const env = { BRIG_HOME: home.path };
  const id = "0199a213-81c0-7800-8aa1-bbab2a035a53";
  const record = (type: string, payload: object) =>
    `${JSON.stringify({ timestamp: "2026-11-24T10:00:00.000Z", type, payload })}\n`;
  const write = async (padding: number) =>
    await writeFile(
      source,
      record("session_meta", { id, cwd: "/", timestamp: "2026-11-24T10:00:00.000Z" }) +
        record("event_msg", { type: "padding", text: "x".repeat(padding) }),
    );
  await write(0);
  expect((await limited(["sessions", "fork", source], env)).exitCode).toBe(0);
  const [copy = ""] = await filesIn(join(home.path, "sessions"));
  const whole = await readFile(join(home.path, "sessions", copy), "utf8");
  const last = whole.trimEnd().split("\n").at(-1) ?? "";
  expect(last).toContain("brig.fork");
  // Ten bytes of its last record fit.
  await write(LIMIT_BYTES - 10 - (Buffer.byteLength(whole) - Buffer.byteLength(last) - 1));
  const failed = await limited(["sessions", "fork", source], env);
  expect(failed.stderr).toContain("cannot be copied");
  expect(failed.exitCode).not.toBe(0);
  expect(await filesIn(join(home.path, "sessions"))).toEqual([copy]);
  expect((await stat(source)).size).toBeLessThan(LIMIT_BYTES);
});

it("a page whose end does not fit is none, and nothing of it stays", async () => {
  await using home = await temporaryDirectory();
  const [run, out] = [join(home.path, "run"), join(home.path, "page.html")];
  const env = { BRIG_HOME: home.path };
  await mkdir(run);
  await writeFile(join(run, "results.jsonl"), "");
  expect((await limited(["view", run, "-o", out], env, 64 * 1024)).exitCode).toBe(0);
  const { size } = await stat(out);
  const short = join(home.path, "short.html");
  const failed = await limited(["view", run, "-o", short], env, Math.floor(size / 1024) - 10);
  expect(failed.stderr).toContain(`cannot write "${short}"`);
  expect(failed.exitCode).not.toBe(0);
  expect(await readdir(home.path)).toEqual(["page.html", "run"]);
});
