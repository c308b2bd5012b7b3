import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../../../src/sandbox/docker/engine-types.js";
import {
  type CommitStage,
  commitTree,
  makeStage,
  newStage,
  recoverTree,
} from "../../../../src/sandbox/tree/tree-commit.js";
import { asItIs, describeTree, forgeJournal, stageWith } from "../../../support/commits.js";
import { testEngine } from "../../../support/engine.js";
import { openApplier, startApplier } from "../../../support/overlay-tree.js";
import { isPodman } from "../../../support/runtime-differences.js";

const committer = fileURLToPath(new URL("../../../fixtures/commit-tree.ts", import.meta.url));
const target = "/base";

const filled = (count: number) =>
  `mkdir d{0..9}; for n in {0..${count - 1}}; do echo -n 'round 0' > d$((n % 10))/f$n; done`;

/**
 * Removes a container, and before that kills its first process by itself where the engine is Podman, which takes longer to kill a container than a
 * commit takes. Podman's processes are this machine's, and only root runs its tests; a Docker engine may be elsewhere, and its numbers those of others.
 */
async function killerOf(engine: Engine, id: string): Promise<() => Promise<void>> {
  const pid = isPodman ? (await engine.inspectContainer(id))?.pid : null;
  return async () => {
    if (pid) process.kill(pid, "SIGKILL");
    await engine.removeContainer(id);
  };
}

/** The distinct texts of all files below a directory. */
async function texts(directory: string): Promise<string[]> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = names.filter((one) => one.isFile() && !one.parentPath.includes(".brig-stage"));
  return [
    ...new Set(await Promise.all(files.map((one) => readFile(join(one.parentPath, one.name), "utf8")))),
  ];
}

const stages = async (directory: string) =>
  (await readdir(directory)).filter((name) => name.startsWith(".brig-stage"));

describe("a commit that is cut off", () => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await testEngine();
  });

  it("goes on to its end when the program that asked for it is killed", async () => {
    const count = 300;
    for (let attempt = 0; attempt < 6; attempt++) {
      await using applier = await openApplier(engine, { base: filled(count), isConnected: false });
      const child = spawn(
        process.execPath,
        ["--import", "tsx", committer, applier.id, applier.token, String(count)],
        {
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      const lines = createInterface(child.stdout);
      const known = new Map<string, CommitStage>();
      lines.on("line", (line) => {
        const { name, key } = JSON.parse(line) as { name: string; key: string };
        known.set(name, { name, key: Buffer.from(key, "hex") });
      });
      await once(lines, "line");
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 200));
      const closed = once(child, "close");
      child.kill("SIGKILL");
      await closed;
      // The runner finishes the commit that it has begun.
      await expect.poll(() => texts(applier.base)).toHaveLength(1);
      await engine.removeContainer(applier.id);
      expect(await texts(applier.base)).toHaveLength(1);
      await using another = await startApplier(engine, { base: applier.base });
      for (const name of await stages(applier.base)) {
        const stage = known.get(name);
        // The program was killed before it printed the name of this stage.
        if (stage === undefined) await another.shell(`rm -r /base/${name}`);
        else expect(await recoverTree(another.context, { target, stage })).toEqual({ undone: 0 });
      }
      expect(await stages(applier.base)).toEqual([]);
      expect(await texts(applier.base)).toHaveLength(1);
    }
  });

  it("is undone by whoever finds it when its container is killed", async () => {
    const count = 1500;
    const numbers = Array.from({ length: count }, (_, index) => index);
    const outcomes: string[] = [];
    for (let attempt = 0; attempt < 6; attempt++) {
      await using applier = await openApplier(engine, {
        base: `${filled(count)}; mkdir -p old/deep; touch old/deep/x; chmod 555 old`,
      });
      const kill = await killerOf(engine, applier.id);
      const before = await describeTree(applier.base);
      const stage = await stageWith(applier.context, { target, contents: numbers.map(() => "round 1") });
      const commit = commitTree(applier.context, {
        target,
        stage,
        records: [
          ...numbers.map(
            (n) =>
              ({ action: "put", path: `d${n % 10}/f${n}`, content: n, mode: 0o644, expects: "any" }) as const,
          ),
          { action: "mkdir", path: "a", mode: 0o500, expects: "absent" },
          { action: "mkdir", path: "d3", mode: 0o555, expects: "any" },
          { action: "remove", path: "old", expects: "any" },
          { action: "symlink", path: "a/l", linkTarget: Buffer.from("t"), expects: "absent" },
        ],
      });
      const ended = commit.then(
        () => "ended",
        () => "cut off",
      );
      // Waits until some of the files have been replaced, and then kills the container.
      const file = join(applier.base, `d${attempt % 10}/f${attempt * 200 + (attempt % 10)}`);
      while ((await readFile(file, "utf8")) === "round 0")
        await new Promise((resolve) => setImmediate(resolve));
      await kill();
      await ended;
      await using another = await startApplier(engine, { base: applier.base });
      const { undone } = await recoverTree(another.context, { target, stage });
      outcomes.push(undone > 0 ? "undone" : "done");
      if (undone > 0) expect(await describeTree(applier.base)).toEqual(before);
      else expect(await texts(applier.base)).toEqual(expect.arrayContaining(["round 1"]));
      expect(await texts(applier.base)).not.toEqual(expect.arrayContaining(["round 0", "round 1"]));
      expect(await stages(applier.base)).toEqual([]);
    }
    expect(outcomes).toContain("undone");
  });

  it("is not undone by the forged notes of somebody else who may write there", async () => {
    await using applier = await openApplier(engine, { base: "echo mine > secret; echo theirs > planted" });
    const forged = newStage();
    await makeStage(applier.context, { target, stage: forged });
    // The forged journal asks to move the planted file to the path of the other one.
    await applier.shell(`cd /base; mv planted ${forged.name}/o0; ls -i ${forged.name}/o0`);
    const step = { path: "secret", newIno: (await asItIs(applier.base, "secret")) as { ino: bigint } };
    const journal = join(applier.base, forged.name, "journal");
    await writeFile(
      journal,
      forgeJournal({ path: step.path, newIno: step.newIno.ino, key: Buffer.alloc(32, 1) }),
    );
    await expect(recoverTree(applier.context, { target, stage: forged })).rejects.toMatchObject({
      errno: "EBADMSG",
    });
    expect(await readFile(join(applier.base, "secret"), "utf8")).toBe("mine\n");
    // With the right key, the same journal is obeyed.
    await writeFile(journal, forgeJournal({ path: step.path, newIno: step.newIno.ino, key: forged.key }));
    expect(await recoverTree(applier.context, { target, stage: forged })).toEqual({ undone: 1 });
    expect(await readFile(join(applier.base, "secret"), "utf8")).toBe("theirs\n");
  });

  it("needs nothing undone where it never was", async () => {
    await using applier = await openApplier(engine, {});
    expect(await recoverTree(applier.context, { target, stage: newStage() })).toEqual({ undone: 0 });
  });
});
