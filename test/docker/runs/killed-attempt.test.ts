import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { RESULT_FILE } from "../../../src/batch/runs/results/run-files.js";
import { readHostProcesses } from "../../../src/lib/owner.js";
import { reclaimPlaceholders, recordedNow } from "../../../src/sandbox/sandbox-records.js";
import { sweep } from "../../../src/sandbox/sweep.js";
import { testEngine } from "../../support/engine.js";
import { sandboxTest } from "../../support/sandbox.js";

const program = fileURLToPath(new URL("../../fixtures/attempt-until-killed.ts", import.meta.url));

/** The id of the container of an attempt in this directory, whose process was killed. */
async function killAttempt(directory: string): Promise<string> {
  const child = spawn(process.execPath, ["--import", "tsx", program, directory], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  const early = ended.then(() => {
    throw new Error("the program ended before it was killed");
  });
  early.catch(() => undefined);
  const [line] = (await Promise.race([once(child.stdout.setEncoding("utf8"), "data"), early])) as [string];
  child.kill("SIGKILL");
  await ended;
  return line.trim();
}

describe("an attempt whose process was killed", () => {
  sandboxTest(
    "leaves nothing on the engine after the next start, once its container has ended",
    async ({ directory }) => {
      const id = await killAttempt(directory);
      const engine = await testEngine();
      const brigHome = join(directory, "home");
      const processes = await readHostProcesses(hostname());
      await reclaimPlaceholders(engine, { brigHome, processes });
      expect((await engine.inspectContainer(id))?.running).toBe(true);
      // As at the end of its lease.
      await engine.killContainer(id);
      await engine.waitContainer(id);
      expect(await engine.inspectContainer(id)).not.toBeNull();
      await reclaimPlaceholders(engine, { brigHome, processes });
      expect(await engine.inspectContainer(id)).toBeNull();
      expect(await readdir(join(brigHome, "sandboxes"))).toEqual([]);
    },
  );

  sandboxTest("has no result, and leaves nothing on the engine after a sweep", async ({ directory }) => {
    const id = await killAttempt(directory);
    const engine = await testEngine();
    // Another test's sweep can see it too, but only with this home's records does one remove it.
    expect(await engine.inspectContainer(id)).not.toBeNull();
    const brigHome = join(directory, "home");
    const processes = await readHostProcesses(hostname());
    const records = recordedNow(brigHome);
    const { containers } = await sweep(engine, { now: new Date(), processes, records });
    expect(containers.find((one) => one.id === id)).toMatchObject({ verdict: "owner-gone", removed: true });
    await reclaimPlaceholders(engine, { brigHome, processes });
    expect(await engine.inspectContainer(id)).toBeNull();
    expect(await readdir(join(brigHome, "sandboxes"))).toEqual([]);
    const [folder = ""] = (await readdir(directory)).filter((name) => name.startsWith("attempt-"));
    expect(await readdir(join(directory, folder))).not.toContain(RESULT_FILE);
  });
});
