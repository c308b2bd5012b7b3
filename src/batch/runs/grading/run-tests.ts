import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { BrigError, type ErrorCode, isBrigError } from "../../../errors.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { Engine, Sandbox, SecondSandbox } from "../../../sandbox/index.js";
import { openBeside } from "../../../sandbox/index.js";
import type { Task, TaskCheck, TaskStep } from "../../tasks/task.js";
import { BoundedLog } from "../agents/command-agent.js";
import type { AttemptLimits } from "../attempt/attempt.js";
import { type ExceededDisk, occupiedBytes, watchDisk } from "../attempt/disk-watch.js";
import { unlessRefused } from "../place/file-refusal.js";
import { type ImageUser, rootUser } from "../place/image-user.js";
import { makeExactly } from "../place/make-directories.js";
import { isSpoilt, spoiltScript } from "../place/prepare-environment.js";
import { uploadDirectory } from "../place/upload-directory.js";
import { ExtendedLimit, type TimeAllowed, type TimeTaken, timeAllowed } from "../processors.js";
import { VERIFIER_LOGS } from "./rewards.js";

const LOGS = "/logs";
const TESTS_DIRECTORY = "/tests";
export const TEST_OUTPUT = "test-output.txt";

/** Limit for the test output that a parser reads. */
export const PARSED_OUTPUT_BYTES = 16 * 1024 * 1024;

const CHMOD_LIMIT_MS = 60_000;
/** Stands for a script that cannot be read: it may be in the other of two directories. */
const NO_SCRIPT = Buffer.alloc(0);

const TIME_IS_OVER = new Error("the time of the tests is over");
const DISK_IS_FULL = new Error("the tests wrote more than they may");
/** Exit code of timeout(1). */
const TIMEOUT_EXIT_CODE = 124;

export interface TestRun {
  check: TaskCheck;
  /** Folder on the host; gets the output of the tests. */
  folder: string;
  cwd: string;
  /** User that the tests run as. */
  user: { uid: number; gid: number };
  env: Readonly<Record<string, string>>;
  allowed: TimeAllowed;
  disk: TestDisk;
  signal?: AbortSignal | undefined;
}

/** Limit for what tests may write, besides what was there when they began; null for no limit. */
interface TestDisk {
  engine: Pick<Engine, "writtenBytes" | "containerChanges">;
  limitMb: number | null;
}

export interface TestsRun {
  exitCode: number;
  isTimedOut: boolean;
  /** Null unless the tests were ended because they wrote more than they may. */
  diskExceeded: ExceededDisk | null;
  output: string;
  /** The middle of the output is missing, because it is longer than `PARSED_OUTPUT_BYTES`. */
  isOutputCut: boolean;
  time: TimeTaken;
  /** When the tests began and ended, by the clock of the container; null where nothing is judged by it. */
  period: { from: Date; to: Date } | null;
}

/**
 * Makes sure that a fresh container can run the tests that its image has. To be called before anything of the agent is in it.
 * Error: `usage.invalid` for an image without them.
 */
export async function requireTests(
  { asRoot }: Pick<TestContainer, "asRoot">,
  check: TaskCheck,
): Promise<void> {
  if (!areInImage(check)) return;
  const path = `${TESTS_DIRECTORY}/${check.script}`;
  const found = await unlessRefused(asRoot.files.stat(path));
  if (found?.type !== "file")
    throw new BrigError(`the image of the tests has no file ${path}`, {
      code: "usage.invalid",
      hint: "copy the tests into it: COPY . /tests/",
    });
  if (isSpoilt(await asRoot.files.read(path, { maxBytes: PARSED_OUTPUT_BYTES }))) throw spoiltScript(path);
  if ((found.mode & 0o111) !== 0o111)
    await asRoot.exec(["/bin/chmod", "a+x", path], { cwd: "/", timeoutMs: CHMOD_LIMIT_MS });
}

/** Then there is no directory of the host to copy them from. */
function areInImage(check: TaskCheck): check is TaskCheck & { kind: "reward-files"; directory: null } {
  return check.kind === "reward-files" && check.directory === null;
}

/**
 * Runs the tests in a container in which nothing else runs. `/tests`, unless the image has it, and `/logs/verifier` are made
 * anew before, so that nothing in them is older. Errors: those of the sandbox, the engine, and of the task's files on the host.
 */
export async function runTests(
  { asRoot, asTests: sandbox }: Pick<TestContainer, "asRoot" | "asTests">,
  run: TestRun,
): Promise<TestsRun> {
  await freshDirectories(asRoot, { owner: run.user, keepsTests: areInImage(run.check) });
  const argv = await uploadTests(sandbox, run.check);
  const isTimed = run.check.kind === "reward-files";
  const from = isTimed ? await containerTime(sandbox) : null;
  await using log = await BoundedLog.create(join(run.folder, TEST_OUTPUT));
  const ended = await execWithin({ asRoot, asTests: sandbox }, { argv, run, log });
  await log.written();
  const period = from && { from, to: await containerTime(sandbox) };
  return { ...ended, period };
}

/** Root's own runner measures the time, since the other one is within reach of the tests. */
async function execWithin(
  { asRoot, asTests }: Pick<TestContainer, "asRoot" | "asTests">,
  { argv, run, log }: { argv: string[]; run: TestRun; log: BoundedLog },
): Promise<Omit<TestsRun, "period">> {
  // The disk is measured before the clock of the tests starts: asking the engine may take seconds.
  using disk = await DiskLimit.start(asRoot, run);
  using limit = new ExtendedLimit(asRoot, { allowed: run.allowed, reason: TIME_IS_OVER });
  using either = new AnySignal([run.signal, limit.signal, disk.signal]);
  const ended = {
    exitCode: TIMEOUT_EXIT_CODE,
    isTimedOut: false,
    diskExceeded: null,
    output: "",
    isOutputCut: false,
  };
  try {
    const { exitCode, output, truncated } = await asTests.exec(argv, {
      cwd: run.cwd,
      env: run.env,
      signal: either.signal,
      endsTree: true,
      maxOutputBytes: PARSED_OUTPUT_BYTES,
      onStdout: log.write,
      onStderr: log.write,
    });
    return { ...ended, exitCode, output, isOutputCut: truncated, time: await limit.end() };
  } catch (error) {
    if (error === TIME_IS_OVER) return { ...ended, isTimedOut: true, time: await limit.end() };
    if (error === DISK_IS_FULL) return { ...ended, diskExceeded: disk.exceeded, time: await limit.end() };
    throw error;
  }
}

/** Ends the tests when they have written too much. */
class DiskLimit implements Disposable {
  readonly #full = new AbortController();
  readonly #ended = new AbortController();
  exceeded: ExceededDisk | null = null;

  static async start(
    sandbox: Sandbox,
    { disk: { engine, limitMb }, signal }: Pick<TestRun, "disk" | "signal">,
  ): Promise<DiskLimit> {
    const limit = new DiskLimit();
    if (limitMb === null) return limit;
    const limitBytes = limitMb * 1024 ** 2;
    const before = await occupiedBytes(engine, { sandbox, limitBytes, signal });
    // The limit is for what the tests add. Without knowing what was there before, there is none.
    if (before === null) return limit;
    void watchDisk(engine, {
      sandbox,
      limitBytes: before + limitBytes,
      onExceeded: (written) => {
        limit.exceeded = { writtenBytes: written - before, limitBytes };
        limit.#full.abort(DISK_IS_FULL);
      },
      signal: limit.#ended.signal,
    });
    return limit;
  }

  get signal(): AbortSignal {
    return this.#full.signal;
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
  }
}

async function freshDirectories(
  sandbox: Sandbox,
  { owner, keepsTests }: { owner: { uid: number; gid: number }; keepsTests: boolean },
): Promise<void> {
  await (keepsTests ? removeLogs(sandbox) : removeTests(sandbox));
  await makeExactly(sandbox, [
    // An agent that is root may have opened it for others, who could then move what is in it.
    { path: LOGS, mode: 0o755, owner: { uid: 0, gid: 0 } },
    { path: VERIFIER_LOGS, mode: 0o700, owner },
    ...(keepsTests ? [] : [{ path: TESTS_DIRECTORY, mode: 0o755, owner }]),
  ]);
}

/** Errors of removing files below `/logs` if a link or a file is in the place of a directory above them. */
const NO_DIRECTORY_ABOVE: ReadonlySet<ErrorCode> = new Set(["file.symlink", "file.not-directory"]);

/** Removes the tests and what they wrote, with the rights of root. A link at one of these paths is removed itself, never followed. */
export async function removeTests(sandbox: Sandbox): Promise<void> {
  await Promise.all([sandbox.files.remove(TESTS_DIRECTORY, REMOVAL), removeLogs(sandbox)]);
}

const REMOVAL = { recursive: true, force: true, refuseSymlinks: true };

async function removeLogs({ files }: Sandbox): Promise<void> {
  try {
    await files.remove(VERIFIER_LOGS, REMOVAL);
  } catch (error) {
    if (!isBrigError(error) || !NO_DIRECTORY_ABOVE.has(error.code)) throw error;
    await files.remove(LOGS, { force: true });
  }
}

/** Resolves to the program to run, with its arguments. */
async function uploadTests(sandbox: Sandbox, check: TaskCheck): Promise<string[]> {
  if (check.kind === "command") return ["/bin/sh", "-c", check.command];
  if (check.kind === "swe-bench") {
    await sandbox.files.write(`${TESTS_DIRECTORY}/eval.sh`, check.evalScript, { mode: 0o700 });
    return ["/bin/bash", `${TESTS_DIRECTORY}/eval.sh`];
  }
  if (check.kind === "parsed-output") return await uploadScript(sandbox, check);
  const rules = { to: TESTS_DIRECTORY, executable: [check.script] };
  for (const directory of [check.base, check.directory]) {
    const file = directory && join(directory, check.script);
    if (file && isSpoilt(await readFile(file).catch(() => NO_SCRIPT))) throw spoiltScript(file);
  }
  if (check.base !== undefined) await uploadDirectory(sandbox, check.base, rules);
  if (check.directory !== null) await uploadDirectory(sandbox, check.directory, rules);
  // A shell runs a script without an interpreter line itself.
  return ["/bin/sh", "-c", 'exec "$0"', `${TESTS_DIRECTORY}/${check.script}`];
}

/** The script need not be among the other files of the tests. */
async function uploadScript(
  sandbox: Sandbox,
  { directory, script }: TaskCheck & { kind: "parsed-output" },
): Promise<string[]> {
  if (directory !== null) await uploadDirectory(sandbox, directory, { to: TESTS_DIRECTORY });
  const content = await readFile(script);
  if (isSpoilt(content)) throw spoiltScript(script);
  const path = `${TESTS_DIRECTORY}/${basename(script)}`;
  await sandbox.files.remove(path, { recursive: true, force: true });
  await sandbox.files.write(path, content, { mode: 0o755 });
  return ["/bin/bash", path];
}

/** The clock that the container's files have their times from. */
async function containerTime({ files }: Sandbox): Promise<Date> {
  const path = `${VERIFIER_LOGS}/.brig-clock`;
  await files.remove(path, { force: true, recursive: true });
  await files.write(path, "", { refuseSymlinks: true });
  const { modifiedMs } = await files.stat(path, { followSymlinks: false });
  await files.remove(path, { force: true });
  return new Date(modifiedMs);
}

/** A container with tests, in which nothing but brig's own program runs yet. */
interface TestContainer extends Disposable {
  /** Prepares it. Whatever the agent has left there can be put back or removed. */
  readonly asRoot: Sandbox;
  /** The tests run by this one. */
  readonly asTests: Sandbox;
}

/** Opens a container to both users, to each by a runner of its own unless the container's own runner is theirs. */
export async function openTestContainer(
  sandbox: Sandbox,
  { owner, tests }: { owner: ImageUser; tests: ImageUser },
): Promise<TestContainer> {
  const seconds: SecondSandbox[] = [];
  const close = () => {
    for (const second of seconds) second[Symbol.dispose]();
  };
  const open = async (user: ImageUser) => {
    if (isSame(user, owner)) return sandbox;
    const second = await openBeside(sandbox, user);
    seconds.push(second);
    return second.sandbox;
  };
  try {
    const asRoot = await open(rootUser);
    const asTests = isSame(tests, rootUser) ? asRoot : await open(tests);
    return { asRoot, asTests, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

function isSame(one: ImageUser, other: ImageUser): boolean {
  return one.uid === other.uid && one.gid === other.gid;
}

/** Folder of a step. If there are several, each has its own below that of the attempt. */
export function stepFolder(folder: string, { task, step }: { task: Task; step: TaskStep }): string {
  return task.steps.length === 1 ? folder : join(folder, "steps", String(task.steps.indexOf(step) + 1));
}

/** The time that the task gives the tests of a step, with what its run makes of it. */
export function timeForTests(
  { verifier: { timeoutSec } }: TaskStep,
  limits: AttemptLimits = {},
): TimeAllowed {
  const { timeoutMultiplier = 1, timeoutExtension } = limits;
  return timeAllowed(timeoutSec === null ? null : timeoutSec * timeoutMultiplier, timeoutExtension);
}
