import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { BrigError } from "../../../src/errors.js";
import { LABELS } from "../../../src/sandbox/labels.js";
import { brig } from "../../support/cli.js";
import { testEngine } from "../../support/engine.js";
import { always, type Fate, faultyEngine, once } from "../../support/faulty-engine.js";
import { type BreakableSandbox, openBreakable } from "../../support/open-sandbox.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest } from "../../support/sandbox.js";

const removals = /^DELETE \/containers\//;
const looks = /^(GET \/containers\/|POST \/containers\/[^/]+\/wait)/;

async function sandboxOn(engine: SandboxEngine, workspace: string, warnings: BrigError[] = []) {
  return await openBreakable({ engine, workspace, onWarning: (warning) => warnings.push(warning) });
}
type SandboxEngine = Awaited<ReturnType<typeof testEngine>>;

/** Whether something that a command of the sandbox left behind could make a hook that the host's git runs. */
function isOpenToHooks(workspace: string): boolean {
  return existsSync(join(workspace, ".git", "hooks"));
}

const plant =
  "setsid sh -c 'while :; do mkdir -p .git/hooks && echo ran > .git/hooks/pre-commit; sleep 0.05; done' > /dev/null 2>&1 &";

describe("the end of a sandbox", () => {
  const ownEnd = titled("removal.own-end", "is its runner's own, which the engine is not asked for");
  sandboxTest.skipIf(differs("removal.own-end"))(ownEnd, async ({ directory }) => {
    await using faulty = await faultyEngine();
    const sandbox = await sandboxOn(faulty.engine, directory);
    await sandbox.exec(["sh", "-c", plant]);
    await sandbox.close();
    expect(faulty.requests.filter((request) => removals.test(request))).toEqual([]);
    expect(await (await testEngine()).inspectContainer(sandbox.containerId)).toBeNull();
    expect(existsSync(join(directory, ".git"))).toBe(false);
  });

  sandboxTest(
    "leaves a protected name to whoever else has it, and nothing where all end at once",
    async ({ directory }) => {
      const engine = await testEngine();
      for (let turn = 0; turn < 5; turn++) {
        const open = async () => await sandboxOn(engine, directory);
        const [first, ...others] = await Promise.all([open(), open(), open()]);
        await first.close();
        expect(existsSync(join(directory, ".git"))).toBe(true);
        await Promise.all(others.map((one) => one.close()));
        expect(existsSync(join(directory, ".git"))).toBe(false);
      }
    },
  );

  sandboxTest.for(["refused", "cut", "hangs"] as const)(
    "is certain although the engine does not say so at first: %s",
    async (fate, { directory }) => {
      await using faulty = await faultyEngine();
      const sandbox = await sandboxOn(faulty.engine, directory);
      faulty.decide(once(/^POST \/containers\/[^/]+\/wait/, fate));
      await sandbox.close();
      expect(await (await testEngine()).inspectContainer(sandbox.containerId)).toBeNull();
      expect(existsSync(join(directory, ".git"))).toBe(false);
    },
  );
});

// The longest of these wait, as the product does, for answers that do not come: they do so at the same time.
describe.concurrent("the end of a sandbox whose runner does not end", () => {
  const faults: [RegExp, Fate][] = [
    [removals, "hangs"],
    [removals, "refused"],
    [removals, "cut"],
    [removals, "answer-lost"],
    [looks, "refused"],
    [looks, "cut"],
  ];
  sandboxTest.for(["hangs", "refused", "cut"] as const)(
    "is told when the engine goes on failing, and what holds protected names stays while something may run: %s",
    async (fate, { directory }) => {
      const engine = await testEngine();
      await using faulty = await faultyEngine();
      const sandbox = await sandboxOn(faulty.engine, directory);
      await sandbox.exec(["sh", "-c", plant]);
      faulty.withholdEnd();
      faulty.decide(always(/./, fate));
      await expect(sandbox.close()).rejects.toMatchObject({
        code: "engine.failed",
        message: expect.stringContaining("could not be removed"),
        hint: expect.stringContaining("brig gc"),
      });
      expect(await engine.inspectContainer(sandbox.containerId)).toMatchObject({ running: true });
      expect(existsSync(join(directory, ".git"))).toBe(true);
      expect(isOpenToHooks(directory)).toBe(false);

      faulty.decide(() => "passes");
      await sandbox.close();
      expect(await engine.inspectContainer(sandbox.containerId)).toBeNull();
      expect(existsSync(join(directory, ".git"))).toBe(false);
    },
  );

  for (const [pattern, fate] of faults)
    sandboxTest(
      `is its end all the same when the engine fails once: ${pattern.source} ${fate}`,
      async ({ directory }) => {
        await using faulty = await faultyEngine();
        const sandbox = await sandboxOn(faulty.engine, directory);
        faulty.withholdEnd();
        faulty.decide(once(pattern, fate));
        await sandbox.close();
        expect(await (await testEngine()).inspectContainer(sandbox.containerId)).toBeNull();
        expect(existsSync(join(directory, ".git"))).toBe(false);
      },
    );
});

describe("a sandbox that the engine does not remove", () => {
  sandboxTest("does not hide the error that led there with `await using`", async ({ directory }) => {
    await using faulty = await faultyEngine();
    const warnings: BrigError[] = [];
    let opened: BreakableSandbox | undefined;
    const use = async () => {
      await using sandbox = await sandboxOn(faulty.engine, directory, warnings);
      opened = sandbox;
      faulty.withholdEnd();
      faulty.decide(always(removals, "refused"));
      throw new Error("the first error");
    };
    await expect(use()).rejects.toThrow("the first error");
    expect(warnings).toMatchObject([{ code: "engine.failed" }]);
    faulty.decide(() => "passes");
    await opened?.close();
    expect(warnings.length).toBe(1);
  });

  sandboxTest(
    "is told of a sandbox that ended by itself, and of one that never began",
    async ({ directory }) => {
      await using faulty = await faultyEngine();
      const warnings: BrigError[] = [];
      const sandbox = await sandboxOn(faulty.engine, directory, warnings);
      faulty.decide(always(removals, "refused"));
      await (await testEngine()).killContainer(sandbox.containerId);
      await expect.poll(() => warnings.length).toBe(1);
      faulty.decide(() => "passes");
      await sandbox.close();

      faulty.decide((request) => (removals.test(request) || /\/start$/.test(request) ? "refused" : "passes"));
      await expect(sandboxOn(faulty.engine, directory, warnings)).rejects.toMatchObject({
        message: expect.stringContaining("cannot start the container"),
      });
      expect(warnings.length).toBe(2);
      const id = /container ([0-9a-f]{12}) could not be removed/.exec(warnings[1]?.message ?? "")?.[1];
      await (await testEngine()).removeContainer(id ?? "");
    },
  );
});

describe("a container whose creation was not answered", () => {
  sandboxTest.for(["answer-lost"] as const)("is removed by its name: %s", async (fate, { directory }) => {
    await using faulty = await faultyEngine();
    const before = await containersIn(directory);
    expect(before).toEqual([]);
    faulty.decide(once(/^POST \/containers\/create$/, fate));
    await expect(sandboxOn(faulty.engine, directory)).rejects.toMatchObject({ code: "engine.unreachable" });
    expect(faulty.requests.filter((request) => removals.test(request)).length).toBe(1);
    expect(await containersIn(directory)).toEqual([]);
    expect(existsSync(join(directory, ".git"))).toBe(false);
  });

  sandboxTest(
    "costs the start nothing but a look where the engine never heard of it",
    async ({ directory }) => {
      await using faulty = await faultyEngine();
      faulty.decide(once(/^POST \/containers\/create$/, "cut"));
      await expect(sandboxOn(faulty.engine, directory)).rejects.toMatchObject({ code: "engine.unreachable" });
      expect(await containersIn(directory)).toEqual([]);
      faulty.decide(once(/^POST \/containers\/create$/, "refused"));
      const looked = () =>
        faulty.requests.filter((request) => request.startsWith("GET /containers/brig-")).length;
      const lookedBefore = looked();
      await expect(sandboxOn(faulty.engine, directory)).rejects.toMatchObject({ code: "engine.failed" });
      expect(looked()).toBe(lookedBefore);
    },
  );
});

describe("a container whose program was killed before it started it", () => {
  sandboxTest.for([{ flags: [] }, { flags: ["--keep"] }])(
    "is removed by brig gc: $flags",
    async ({ flags }, { directory }) => {
      await using faulty = await faultyEngine();
      faulty.decide(always(/^POST \/containers\/[^/]+\/start$/, "hangs"));
      const program = brig(["exec", ...flags, "--", "true"], {
        cwd: directory,
        env: { DOCKER_HOST: faulty.endpoint },
      });
      await expect.poll(() => faulty.requests.some((request) => request.endsWith("/start"))).toBe(true);
      program.kill("SIGKILL");
      await program;
      const [left] = await containersIn(directory);
      expect(await (await testEngine()).inspectContainer(left ?? "")).toMatchObject({ running: false });
      const { stdout } = await brig(["gc"], { env: { DOCKER_HOST: faulty.endpoint } });
      expect(stdout).toContain(left?.slice(0, 12));
      expect(await containersIn(directory)).toEqual([]);
      expect(existsSync(join(directory, ".git"))).toBe(false);
    },
  );
});

async function containersIn(directory: string): Promise<string[]> {
  const containers = await (await testEngine()).listContainers([LABELS.placeholders]);
  return containers.filter(({ labels }) => JSON.stringify(labels).includes(directory)).map(({ id }) => id);
}
