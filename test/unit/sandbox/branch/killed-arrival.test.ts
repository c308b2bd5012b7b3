import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { readHostProcesses } from "../../../../src/lib/owner.js";
import { removeLeftQuarantines } from "../../../../src/sandbox/branch/arrival.js";
import { compiledFixture } from "../../../support/compiled-fixture.js";
import { commitFile, createRepository, git, gitBytes } from "../../../support/git-repositories.js";

/** At how many moments the program is killed. Usually, more moments find no more faults. */
const MOMENTS = Number(process.env.BRIG_TEST_KILLS ?? 4);

const program = compiledFixture("receive-commits.ts");

/** How long the program takes from its first output to its end, in milliseconds. */
async function timeOf(child: ReturnType<typeof spawn>): Promise<number> {
  const ended = once(child, "exit");
  if (child.stdout !== null) await once(child.stdout, "data");
  const started = performance.now();
  await ended;
  return performance.now() - started;
}

it("an arrival that is killed at any moment leaves the repository as before or as after", async () => {
  const directory = await mkdtemp(join(tmpdir(), "brig-killed-"));
  try {
    const host = await createRepository(join(directory, "host"));
    const agent = join(directory, "agent");
    const home = join(directory, "home");
    git(directory, ["clone", "-q", "--no-hardlinks", host, agent]);
    const tip = await commitFile(
      agent,
      "large",
      Buffer.alloc(3_000_000, Math.random().toString()).toString(),
    );
    const pack = join(directory, "pack");
    await writeFile(pack, gitBytes(agent, ["pack-objects", "--revs", "--stdout", "-q"], `${tip}\n`));
    const receive = (ref: string) =>
      spawn(process.execPath, [program.path, host, pack, tip, home, ref], {
        stdio: ["ignore", "pipe", "inherit"],
      });
    const whole = await timeOf(receive("refs/heads/brig/whole"));
    let arrived = 0;
    for (let moment = 0; moment < MOMENTS; moment++) {
      // Removes the branches of earlier rounds, so that each round has commits to bring.
      git(host, ["for-each-ref", "--format=delete %(refname)", "refs/heads/brig"])
        .split("\n")
        .filter((line) => line !== "")
        .forEach((line) => void git(host, ["update-ref", "--stdin"], `${line}\n`));
      const ref = `refs/heads/brig/${moment}`;
      const child = receive(ref);
      const ended = once(child, "exit");
      await once(child.stdout, "data");
      await sleep((whole * 1.1 * moment) / MOMENTS);
      child.kill("SIGKILL");
      await ended;
      const found = git(host, ["for-each-ref", "--format=%(objectname)", ref]);
      expect(["", tip]).toContain(found);
      if (found === tip) arrived++;
      expect(git(host, ["fsck", "--strict", "--no-dangling"])).toBe("");
      await removeLeftQuarantines(home, await readHostProcesses(hostname()));
      expect(await readdir(join(home, "quarantine")).catch(() => [])).toEqual([]);
      const names = await readdir(join(host, ".git/objects/pack"));
      expect(names.filter((name) => name.startsWith("tmp_"))).toEqual([]);
    }
    if (process.env.BRIG_TEST_KILLS) process.stdout.write(`arrived: ${arrived} of ${MOMENTS}\n`);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
});
