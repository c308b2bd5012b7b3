import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { readEnvironment } from "../../../src/lib/env.js";
import { promised } from "../../guarantees.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";

const holder = fileURLToPath(new URL("../../fixtures/hold-sandbox.ts", import.meta.url));

/** The id of the container of a process that was killed while it had a sandbox. */
async function killHolder(workspace: string, brigHome: string, leaseSeconds = 600): Promise<string> {
  const child = spawn(process.execPath, ["--import", "tsx", holder, `${leaseSeconds}`, workspace], {
    env: { ...process.env, BRIG_HOME: brigHome },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const early = ended.then(() => {
    throw new Error("the program that holds a sandbox ended before it was killed");
  });
  const [line] = (await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), early])) as [string];
  early.catch(() => undefined);
  child.kill("SIGKILL");
  await ended;
  return line.trim();
}

describe("a session whose process was killed", () => {
  sandboxTest(
    promised("kept.placeholders", "gives the places it held back at the next start, wherever that is"),
    async ({ open, directory }) => {
      const [workspace, elsewhere, home] = ["workspace", "elsewhere", "home"].map((name) =>
        join(directory, name),
      );
      for (const path of [workspace, elsewhere, home]) await mkdir(path as string);
      const environment = { ...readEnvironment(), brigHome: home as string };
      const names = [".agents", ".brig", ".codex", ".git"];
      const engine = await testEngine();
      const id = await killHolder(workspace as string, home as string);
      try {
        expect(await readdir(workspace as string)).toEqual(names);
        // Its container still runs: the places are mounted there.
        await (await open({ workspace: elsewhere, environment })).close();
        expect(await readdir(workspace as string)).toEqual(names);
      } finally {
        await engine.removeContainer(id);
      }
      await expect.poll(() => engine.inspectContainer(id), { timeout: 30_000 }).toBeNull();
      await (await open({ workspace: elsewhere, environment })).close();
      expect(await readdir(workspace as string)).toEqual([]);
      expect(await readdir(join(home as string, "sandboxes"))).toEqual([]);
    },
  );

  sandboxTest(
    "ends with its lease also where it is paused, once another one starts",
    async ({ open, directory }) => {
      const [workspace, elsewhere, home] = ["workspace", "elsewhere", "home"].map((name) =>
        join(directory, name),
      );
      for (const path of [workspace, elsewhere, home]) await mkdir(path as string);
      const environment = { ...readEnvironment(), brigHome: home as string };
      const engine = await testEngine();
      const id = await killHolder(workspace as string, home as string, 15);
      try {
        await engine.pauseContainer(id);
        await (await open({ workspace: elsewhere, environment })).close();
        await expect.poll(async () => (await engine.inspectContainer(id))?.paused).toBe(false);
        await expect.poll(() => engine.inspectContainer(id), { timeout: 120_000 }).toBeNull();
      } finally {
        await engine.removeContainer(id);
      }
    },
  );

  sandboxTest("has no say over directories that are in use by another", async ({ open, directory }) => {
    const [workspace, home] = [join(directory, "workspace"), join(directory, "home")];
    for (const path of [workspace, home]) await mkdir(path);
    const environment = { ...readEnvironment(), brigHome: home };
    const engine = await testEngine();
    const id = await killHolder(workspace, home);
    const second = await open({ workspace, environment });
    await engine.removeContainer(id);
    await expect.poll(() => engine.inspectContainer(id), { timeout: 30_000 }).toBeNull();
    await (await open({ workspace: join(directory), environment, mode: "read-only" })).close();
    expect(await readdir(workspace)).toEqual([".agents", ".brig", ".codex", ".git"]);
    await second.close();
    expect(await readdir(workspace)).toEqual([]);
  });
});
