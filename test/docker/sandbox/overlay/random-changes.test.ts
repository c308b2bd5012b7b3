import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect } from "vitest";
import type { Sandbox } from "../../../../src/sandbox/sandbox.js";
import { readTree } from "../../../support/host-tree.js";
import { describeTree, randomCommands, randomNumbers, testSeeds } from "../../../support/random-changes.js";
import { newSandboxTest, temporaryDirectory } from "../../../support/sandbox.js";

const it = newSandboxTest();

/** Without directories, of which git knows none, and without what a patch could not have. */
function knownToGit(tree: Record<string, string | null>, leftOut: readonly string[]) {
  const isLeftOut = (path: string) => leftOut.some((one) => path === one || path.startsWith(`${one}/`));
  return Object.fromEntries(
    Object.entries(tree).filter(([path, content]) => content !== null && !isLeftOut(path)),
  );
}

async function run(sandbox: Sandbox, script: string): Promise<string> {
  return (await sandbox.exec(["bash", "-c", script])).stdout;
}

it.for(testSeeds())(
  "forks, snapshots and applies make the same of random changes, seed %i",
  async (seed, { open }) => {
    await using directory = await temporaryDirectory();
    const random = randomNumbers(seed);
    const workspace = directory.path;
    const onHost = (script: string) =>
      execFileSync("bash", ["-c", script], { cwd: workspace, encoding: "utf8" });
    onHost(`${randomCommands(random, 30)}; mkdir .first; cp -a * .first 2>/dev/null; mv .first first`);
    const before = onHost(describeTree);

    const parent = await open({ workspace, workspaceKind: "overlay" });
    await run(parent, randomCommands(random, 15));
    await using fork = await parent.fork();
    expect(await run(fork, describeTree)).toBe(await run(parent, describeTree));
    await run(fork, randomCommands(random, 10));
    const wanted = await run(fork, describeTree);
    const snapshot = await fork.snapshot();
    expect(await run(await open({ workspace, from: snapshot }), describeTree)).toBe(wanted);
    await snapshot.remove();
    expect(await fork.applyTo(parent)).toMatchObject({ kind: "applied" });
    expect(await run(parent, describeTree)).toBe(wanted);

    expect(onHost(describeTree)).toBe(before);
    await using copy = await temporaryDirectory();
    await cp(workspace, copy.path, { recursive: true, verbatimSymlinks: true });
    const { changes } = await parent.diff();
    const input = changes.map(({ patch }) => patch ?? "").join("");
    if (input !== "") await execa("git", ["apply", "--whitespace=nowarn", "-"], { cwd: copy.path, input });
    expect(await parent.apply()).toMatchObject({ conflicts: [], skipped: [] });
    expect(onHost(describeTree)).toBe(wanted);
    // In the place of a directory with empty ones in it, git makes no file.
    const leftOut = changes.flatMap(({ path, patch, before, after }) =>
      patch === null && before?.type === "directory" && after !== null && after.type !== "directory"
        ? [path]
        : [],
    );
    const [is, wantedOnHost] = [await readTree(copy.path), await readTree(workspace)];
    expect(knownToGit(is, leftOut)).toEqual(knownToGit(wantedOnHost, leftOut));
    expect((await parent.diff({ patches: false })).count).toBe(0);
  },
);

it.for([
  ["a directory replaced by a file", "mkdir -p d/b; ln -s x d/b/l", "rm -r d/b; echo y > d/b"],
  ["a directory of which the parent had removed a file", "rm d/a", "rm -r d"],
  ["a directory that the parent had removed, as it was", "rm -r d", "cp -a copy d"],
  [
    "a part of a directory that the parent had removed",
    "rm -r d",
    "mkdir -p d/e; cp -a copy/e/f d/e; echo n > d/n",
  ],
  ["a file that has two names on the host", "true", "echo more >> linked"],
] as const)("a fork can bring %s to its parent", async ([, ofParent, ofFork], { open }) => {
  await using directory = await temporaryDirectory();
  const onHost = (script: string) => execFileSync("sh", ["-ec", script], { cwd: directory.path });
  mkdirSync(join(directory.path, "d", "e"), { recursive: true });
  writeFileSync(join(directory.path, "d", "a"), "host\n");
  writeFileSync(join(directory.path, "d", "e", "f"), "host\n");
  onHost("chmod 711 d/e; mkdir -p d/empty/deep; cp -a d copy; echo host > linked; ln linked second");
  const parent = await open({ workspace: directory.path, workspaceKind: "overlay" });
  await run(parent, ofParent);
  await using fork = await parent.fork();
  await run(fork, ofFork);
  expect(await fork.applyTo(parent)).toMatchObject({ kind: "applied" });
  expect(await run(parent, describeTree)).toBe(await run(fork, describeTree));
});
