import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createToolRegistry } from "../../src/tools/registry.js";
import { testEngine } from "../support/engine.js";
import { patchCases } from "../support/patch-cases.js";
import { codexEngine, patchCase, patched, programIn, toolsEngine, tried } from "../support/patch-engines.js";
import { realCodex, whyNoCodex } from "../support/real-codex.js";
import { sanitizerFindings, watchedToolbox } from "../support/runner-builds.js";
import { openTestSandbox, sandboxTest, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { patchOf } from "../unit/tools/patch/patches.js";

const add = patchOf("*** Add File: made.txt", "+x");
/** The part `random` of `npm run test:all` tries many more trees, and sanitizers watch the program meanwhile: to compile it with them takes a minute. */
const isDeep = process.env.BRIG_TEST_DEEP === "1";
const caseCount = isDeep ? 1000 : 60;
const leadsOut = patchOf("*** Update File: ../outside", "@@", "-a", "+b");
const codex = realCodex === null ? null : await codexEngine(realCodex);
const USAGE = "Usage: apply_patch 'PATCH'\n       echo 'PATCH' | apply_patch\n";

describe("apply_patch on PATH", () => {
  sandboxTest("applies its argument, or its input, where it is started", async ({ sandbox, workspace }) => {
    const folder = join(workspace, "argument");
    await mkdir(folder);
    const said = "Success. Updated the following files:\nA made.txt\n";
    expect(await sandbox.exec(["apply_patch", add], { cwd: folder })).toMatchObject({
      exitCode: 0,
      stdout: said,
    });
    expect(await readFile(join(folder, "made.txt"), "utf8")).toBe("x\n");
    await writeFile(join(folder, "p.diff"), patchOf("*** Update File: made.txt", "@@", "-x", "+y"));
    const piped = await sandbox.exec(["sh", "-c", "applypatch < p.diff && cat made.txt"], { cwd: folder });
    expect(piped.stdout).toBe("Success. Updated the following files:\nM made.txt\ny\n");
    const heredoc = `if true; then apply_patch <<'EOF'\n${patchOf("*** Delete File: made.txt")}\nEOF\nfi; ls`;
    const nested = await sandbox.exec(["bash", "-c", heredoc], { cwd: folder });
    expect(nested.stdout).toBe("Success. Updated the following files:\nD made.txt\np.diff\n");
  });

  sandboxTest("says what is wrong in Codex's words, with its exit codes", async ({ sandbox, workspace }) => {
    const run = async (...args: (string | Buffer)[]) => {
      const { exitCode, stderr } = await sandbox.exec(["apply_patch", ...(args as string[])], {
        cwd: workspace,
      });
      return [exitCode, stderr.replaceAll(workspace, "ROOT")];
    };
    expect(await run()).toEqual([2, USAGE]);
    expect(await run(add, "more")).toEqual([2, "Error: apply_patch accepts exactly one argument.\n"]);
    expect(await run("")).toEqual([1, "Invalid patch: The last line of the patch must be '*** End Patch'\n"]);
    const bytes = await sandbox.exec(["sh", "-c", "printf '\\377' | apply_patch"], { cwd: workspace });
    expect([bytes.exitCode, bytes.stderr]).toEqual([
      1,
      "Error: Failed to read PATCH from stdin.\nstream did not contain valid UTF-8\n",
    ]);
    const argument = await sandbox.exec(["bash", "-c", "apply_patch $'\\377'"], { cwd: workspace });
    expect([argument.exitCode, argument.stderr]).toEqual([
      1,
      "Error: apply_patch requires a UTF-8 PATCH argument.\n",
    ]);
  });

  sandboxTest("has the authority of whoever runs it, and no more", async ({ sandbox, workspace, open }) => {
    const outside = patchOf("*** Add File: /etc/made", "+x");
    expect(await sandbox.exec(["apply_patch", outside], { cwd: workspace })).toMatchObject({
      exitCode: 1,
      stderr: "Failed to write file /etc/made: Read-only file system (os error 30)\n",
    });
    await mkdir(join(workspace, ".git"), { recursive: true });
    const reading = await open({ workspace, mode: "read-only" });
    expect(await reading.exec(["apply_patch", add], { cwd: workspace })).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^Failed to write file .*: Read-only file system \(os error 30\)\n$/),
    });
    expect(await reading.exec(["apply_patch", patchOf("*** Add File: /tmp/made", "+x")])).toMatchObject({
      exitCode: 0,
    });
    const masked = 'umask 077; apply_patch "$1" && stat -c %a /tmp/masked';
    const made = await sandbox.exec(["sh", "-c", masked, "sh", patchOf("*** Add File: /tmp/masked", "+x")]);
    expect(made.stdout).toMatch(/\n600\n$/);
  });

  sandboxTest(
    "comes behind a program of that name in the image or the user's PATH",
    async ({ sandbox, workspace }) => {
      const own = join(workspace, "own");
      await mkdir(own);
      await writeFile(join(own, "apply_patch"), "#!/bin/sh\necho mine\n", { mode: 0o755 });
      const ran = await sandbox.exec(["sh", "-c", 'PATH="$1:$PATH"; apply_patch', "sh", own]);
      expect(ran.stdout).toBe("mine\n");
      const path = await sandbox.exec(["sh", "-c", 'echo "$PATH"']);
      expect(path.stdout).toMatch(/:\/\.brig\/bin\n$/);
      expect(
        (await sandbox.exec(["sh", "-c", "echo $PATH"], { env: { PATH: "/usr/bin:/bin" } })).stdout,
      ).toBe("/usr/bin:/bin\n");
    },
  );

  sandboxTest(
    "is found by the scripts of the tools, login shells included",
    async ({ sandbox, workspace }) => {
      const tools = createToolRegistry(sandbox, { cwd: workspace });
      await mkdir(join(workspace, "tools"));
      const patch = patchOf("*** Add File: tools/made.txt", "+x");
      const script = `apply_patch '${patch}' && cat tools/made.txt && command -v applypatch rg`;
      for (const login of [true, false]) {
        const exec = await tools.get("exec_command").execute({ cmd: script, login });
        expect(exec.content).toContain("A tools/made.txt\nx\n/.brig/bin/applypatch\n");
        const command = await tools.get("shell_command").execute({ command: script, login });
        expect(command.content).toContain("A tools/made.txt\nx\n/.brig/bin/applypatch\n");
      }
    },
  );
});

describe("the tools and the program", { timeout: 300_000 }, () => {
  sandboxTest.for(patchCases)("$what", async (given, { sandbox, workspace: parent }) => {
    for (const engine of [toolsEngine(sandbox.files), programIn(sandbox)]) {
      const { seen, wanted } = await tried(engine, { parent, ...given });
      expect(seen).toEqual(wanted);
    }
  });

  sandboxTest.for([
    ["a FIFO", "fifo", "path `ROOT/fifo` is not a file"],
    ["a device", "/dev/zero", "path `/dev/zero` is not a file"],
    ["a sparse giant", "giant", "file is larger than 67108864 bytes"],
  ] as const)(
    "refuse %s without waiting for it, and change nothing",
    async ([, path, reason], { open, directory }) => {
      const sandbox = await open({ workspace: directory });
      await sandbox.exec(["sh", "-c", "mkfifo fifo; truncate -s 1T giant"]);
      const count = (await sandbox.files.list(directory)).length;
      const patch = patchOf("*** Add File: first", "+x", `*** Update File: ${path}`, "@@", "-a", "+b");
      for (const engine of [toolsEngine(sandbox.files), programIn(sandbox)]) {
        const { exitCode, said } = await engine(patch, directory);
        const shown = said.replaceAll(directory, "ROOT");
        const named = path.startsWith("/") ? path : `ROOT/${path}`;
        expect([exitCode, shown]).toEqual([1, `Failed to read file to update ${named}: ${reason}\n`]);
        expect(await sandbox.files.list(directory)).toHaveLength(count);
      }
    },
  );

  it("make the same of any tree and any patch, and say the same", async () => {
    const toolboxVolume = isDeep ? await watchedToolbox(await testEngine()) : undefined;
    await using opened = await openTestSandbox({ toolboxVolume });
    const { sandbox, workspace: parent } = opened;
    let applied = 0;
    const [tools, program] = [toolsEngine(sandbox.files), programIn(sandbox)];
    await fc.assert(
      fc.asyncProperty(patchCase, async (given) => {
        const wanted = await patched(tools, { parent, ...given });
        const seen = await patched(program, { parent, ...given });
        expect(seen).toEqual(wanted);
        applied += wanted.exitCode === 0 ? 1 : 0;
      }),
      { numRuns: caseCount, examples: [[{ tree: {}, patch: leadsOut }]] },
    );
    expect(applied).toBeGreaterThan(caseCount / 60);
    expect(await sanitizerFindings(sandbox)).toBe("");
  });

  it("take a bounded time for what is hard to match", async () => {
    await using opened = await openTestSandbox();
    const { sandbox, workspace } = opened;
    await writeFile(join(workspace, "a.txt"), "a\n".repeat(20_000));
    for (const body of [
      "@@\n".repeat(50_000),
      "*** Delete File: a.txt\n".repeat(20_000),
      `*** Update File: a.txt\n${"@@\n-a \n".repeat(10_000)}`,
      `*** Update File: a.txt\n@@\n${" a\n".repeat(10_000)}-b\n`,
    ]) {
      const run = await sandbox.exec(["apply_patch"], {
        cwd: workspace,
        stdin: `*** Begin Patch\n${body}*** End Patch`,
        timeoutMs: 60_000,
      });
      expect(run).toMatchObject({ timedOut: false, signal: null });
    }
  });
});

describe.skipIf(codex === null)(withReason("Codex itself", whyNoCodex), () => {
  it.for(patchCases)("comes to the same, but where that is said: $what", async (given) => {
    await using directory = await temporaryDirectory();
    const { seen, wanted } = await tried(codex!, { parent: directory.path, ...given });
    if (given.isUnlikeCodex) expect(seen).not.toEqual(wanted);
    else expect(seen).toEqual(wanted);
  });
});
