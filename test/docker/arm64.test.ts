import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { isBrigError } from "../../src/errors.js";
import { sandboxFiles } from "../../src/sandbox/files/files.js";
import { nodeFiles } from "../../src/sandbox/images/npm-packages.js";
import { exec } from "../../src/sandbox/process/run-to-end.js";
import { testEngine } from "../support/engine.js";
import { type RunnerContainer, startRunnerContainer } from "../support/runner-container.js";
import { openTestSandbox } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";

/** An image for arm64 on a machine that runs its programs by QEMU; .ci/arm64 makes both, and a toolbox for it. */
const image = process.env.BRIG_TEST_ARM64;
const why = image === undefined ? "needs what .ci/arm64 makes" : null;
const whyNotBase = image?.endsWith(":base") ? null : "needs the default image, of .ci/arm64 --images";

describe.skipIf(why !== null)(withReason("a runner and programs for arm64, by QEMU", why), () => {
  let container: RunnerContainer;

  beforeAll(async () => {
    const user = "1000:1000";
    container = await startRunnerContainer(await testEngine(), {
      image,
      user,
      mounts: [],
      tmpfs: { "/work": "mode=1777,exec" },
    });
  });
  afterAll(() => container[Symbol.asyncDispose]());

  const run = async (...argv: string[]) => await exec(container.context, argv, {});

  it("run commands, and say how they end", async () => {
    expect(await run("uname", "-m")).toMatchObject({ exitCode: 0, stdout: "aarch64\n" });
    expect(await run("sh", "-c", "echo out; echo err >&2; exit 7")).toMatchObject({
      ...{ exitCode: 7, stdout: "out\n", stderr: "err\n" },
    });
    expect(await exec(container.context, ["cat"], { stdin: "given" })).toMatchObject({ stdout: "given" });
    expect(await exec(container.context, ["sleep", "600"], { timeoutMs: 500 })).toMatchObject({
      timedOut: true,
    });
    expect(await run("sh", "-c", "kill -9 $$")).toMatchObject({ exitCode: 137 });
    const large = await run("sh", "-c", "yes | head -c 3000000");
    expect(large.stdout).toHaveLength(3_000_000);
  });

  it("read, write and list files, and apply patches to them", async () => {
    const files = sandboxFiles(container.context);
    await files.write("/work/one", "before\n");
    expect((await files.read("/work/one")).toString()).toBe("before\n");
    expect((await files.list("/work")).map(({ name }) => name)).toEqual(["one"]);
    const patch = "*** Begin Patch\n*** Update File: /work/one\n@@\n-before\n+after\n*** End Patch\n";
    expect(await run("/.brig/bin/apply_patch", patch)).toMatchObject({ exitCode: 0 });
    expect((await files.read("/work/one")).toString()).toBe("after\n");
    expect((await run("/.brig/rg", "--no-heading", "-H", "after", "/work")).stdout).toBe("/work/one:after\n");
  });

  it.skipIf(whyNotBase !== null)(
    withReason("have the programs of the default image", whyNotBase),
    async () => {
      const files = sandboxFiles(container.context);
      const [node] = nodeFiles;
      expect(await run("node", "-v")).toMatchObject({ stdout: `v${node?.packages.arm64?.version}\n` });
      expect(await run("node", "-p", "process.arch")).toMatchObject({ exitCode: 0, stdout: "arm64\n" });
      expect(await run("npm", "--version")).toMatchObject({ exitCode: 0, stderr: "" });
      expect(await run("python", "-c", "import platform, sqlite3; print(platform.machine())")).toMatchObject({
        stdout: "aarch64\n",
      });
      const patch = '*** Begin Patch\n*** Update File: one.c\n@@\n-"before"\n+"after"\n*** End Patch\n';
      const inWork = async (script: string, ...words: string[]) =>
        await exec(container.context, ["sh", "-c", script, ...words], { cwd: "/work" });
      await files.write(
        "/work/one.c",
        '#include <stdio.h>\nint main(void) { return puts(\n"before"\n) < 0; }\n',
      );
      expect(
        await inWork(
          '/.brig/bin/apply_patch "$0" && rg -c after one.c && gcc -Wall -Werror -o one one.c && ./one',
          patch,
        ),
      ).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^1\nafter$/m) });
      expect(
        await inWork("git init -q r && cp one.c r && cd r && git add one.c && git status --short"),
      ).toMatchObject({
        ...{ exitCode: 0, stdout: "A  one.c\n" },
      });
    },
  );

  it("make a sandbox whose proof finds only the calls that QEMU itself refuses", async () => {
    const refusal = await openTestSandbox({ image }).then(
      () => null,
      (error: unknown) => error,
    );
    if (!isBrigError(refusal, "policy.not-enforced")) throw refusal;
    const differences = refusal.message.split("\n").slice(1);
    // It answers that there is no such call, before the sandbox's own filter is asked.
    for (const line of differences) expect(line).toMatch(/^ {2}N-system-calls: .* errno (?:38|14)$/);
    expect(differences).not.toEqual([]);
  });
});
