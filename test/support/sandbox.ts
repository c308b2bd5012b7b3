import { readFileSync } from "node:fs";
import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "vitest";
import type { Sandbox } from "../../src/sandbox/sandbox.js";
import type { ExecResult } from "../../src/sandbox/sandbox-types.js";
import { testEngine } from "./engine.js";
import { giveToHostUser } from "./host-users.js";
import { type BreakableSandbox, openBreakable, type TestSandboxOptions } from "./open-sandbox.js";
import { sanitizerFindings, watchedToolbox } from "./runner-builds.js";
import { testRuntime } from "./runtime-differences.js";

/** A directory of this machine that goes away with its owner. */
export interface TemporaryDirectory extends AsyncDisposable {
  readonly path: string;
}

export async function temporaryDirectory(parent = tmpdir()): Promise<TemporaryDirectory> {
  const path = await realpath(await mkdtemp(join(parent, "brig-test-")));
  await giveToHostUser(path);
  return {
    path,
    async [Symbol.asyncDispose]() {
      await rm(path, { recursive: true, force: true });
    },
  };
}

/** "asan", or "volume:" and the name of a volume with another runner in it. */
const testedToolbox = process.env.BRIG_TEST_TOOLBOX;

/** The tests run on a runner that sanitizers watch, and fail when these find something. */
export const isWatched = testedToolbox === "asan";

/** A sandbox with what was made for it. Disposing of it fails when its container outlives it. */
export interface TestSandbox extends AsyncDisposable {
  readonly sandbox: BreakableSandbox;
  /** On the host, and at the same path inside. */
  readonly workspace: string;
}

/** Opens a sandbox on the runtime under test; without a workspace given it gets an empty one of its own. */
export async function openTestSandbox(options: TestSandboxOptions = {}): Promise<TestSandbox> {
  const directory = await temporaryDirectory();
  const workspace = options.workspace ?? directory.path;
  try {
    const toolboxVolume = options.toolboxVolume ?? (await toolboxUnderTest());
    const sandbox = await openBreakable({ runtime: testRuntime, ...options, toolboxVolume, workspace });
    return {
      sandbox,
      workspace,
      async [Symbol.asyncDispose]() {
        const findings = isWatched ? await sanitizerFindings(sandbox) : "";
        await sandbox.close();
        await directory[Symbol.asyncDispose]();
        if (findings !== "") throw new Error(`a sanitizer stopped the runner:\n${findings}`);
        if (!options.keep) await requireGone(sandbox);
      },
    };
  } catch (error) {
    await directory[Symbol.asyncDispose]();
    throw error;
  }
}

/** The volume of the runner under test, or undefined for this version's own. */
export async function toolboxUnderTest(): Promise<string | undefined> {
  if (isWatched) return await watchedToolbox(await testEngine());
  return testedToolbox?.startsWith("volume:") ? testedToolbox.slice("volume:".length) : undefined;
}

async function requireGone({ engine, containerId }: BreakableSandbox): Promise<void> {
  if ((await engine.inspectContainer(containerId)) !== null)
    throw new Error(`the container ${containerId} is still there after its sandbox was closed`);
}

/** Options of a sandbox for several tests of a file. What belongs to them may lie in the directory, which is empty at first. */
export type SharedOptions = (directory: string) => TestSandboxOptions | Promise<TestSandboxOptions>;

async function openWith(options: SharedOptions, parent: string): Promise<TestSandbox> {
  return await openTestSandbox(await options((await temporaryDirectory(parent)).path));
}

/** Tests as `sandboxTest` makes them, with a shared sandbox of their own. */
export const newSandboxTest = () =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
    .extend("shared", { scope: "file" }, async ({}, { onCleanup }) => {
      const opened = await openTestSandbox();
      onCleanup(() => opened[Symbol.asyncDispose]());
      return opened;
    })
    .extend("sandbox", { scope: "file" }, ({ shared }) => shared.sandbox)
    .extend("workspace", { scope: "file" }, ({ shared }) => shared.workspace)
    // biome-ignore lint/correctness/noEmptyPattern: as above
    .extend("openShared", { scope: "file" }, async ({}, { onCleanup }) => {
      const opened = new Map<SharedOptions, Promise<TestSandbox>>();
      const directory = await temporaryDirectory();
      onCleanup(async () => {
        for (const one of opened.values()) await (await one)[Symbol.asyncDispose]();
        await directory[Symbol.asyncDispose]();
      });
      return async (options: SharedOptions) => {
        const one = opened.get(options) ?? openWith(options, directory.path);
        opened.set(options, one);
        return (await one).sandbox;
      };
    })
    // biome-ignore lint/correctness/noEmptyPattern: as above
    .extend("open", async ({}, { onCleanup }) => {
      const opened: TestSandbox[] = [];
      onCleanup(async () => {
        for (const one of opened) await one[Symbol.asyncDispose]();
      });
      return async (options: TestSandboxOptions = {}) => {
        const one = await openTestSandbox(options);
        opened.push(one);
        return one.sandbox;
      };
    })
    // biome-ignore lint/correctness/noEmptyPattern: as above
    .extend("directory", async ({}, { onCleanup }) => {
      const made = await temporaryDirectory();
      onCleanup(() => made[Symbol.asyncDispose]());
      return made.path;
    });

/**
 * Tests with sandboxes on the real engine: `sandbox` (workspace-write) is shared by the tests of a file, `openShared`
 * opens one of other options at its first call with them in a file, and `open` opens others that last as long as the test.
 */
export const sandboxTest = newSandboxTest();

/**
 * Runs a program that says "ready" when its timeout may end it. Where the machine was too slow for that the timeout
 * proves nothing, and it is run again with twice the time.
 */
export async function execUntilReady(
  sandbox: Sandbox,
  argv: readonly string[],
  timeoutMs: number,
): Promise<ExecResult> {
  for (let allowedMs = timeoutMs; ; allowedMs *= 2) {
    const result = await sandbox.exec(argv, { timeoutMs: allowedMs });
    if (!result.timedOut || result.stdout.includes("ready\n")) return result;
  }
}

const interpreters: Record<string, string> = { ".py": "python3", ".sh": "bash", ".pl": "perl" };

/** The argument vector that runs a program of test/fixtures inside a sandbox, where the file itself is not. */
export function program(name: string, ...args: string[]): string[] {
  const extension = name.slice(name.lastIndexOf("."));
  const text = readFileSync(fileURLToPath(new URL(`../fixtures/${name}`, import.meta.url)), "utf8");
  const interpreter = interpreters[extension];
  if (interpreter === undefined) throw new Error(`nothing runs ${name}`);
  const flag = extension === ".pl" ? "-e" : "-c";
  // A shell's first argument after the script is its $0.
  return [interpreter, flag, text, ...(extension === ".sh" ? [name] : []), ...args];
}
