import { type ChildProcess, spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { constants as osConstants } from "node:os";
import { join, resolve } from "node:path";
import { PassThrough, type Readable } from "node:stream";
import { BrigError } from "../../src/errors.js";
import type {
  ToolExit,
  ToolProcess,
  ToolSandbox,
  ToolSpawnOptions,
  ToolStartFailure,
} from "../../src/tools/tool-sandbox.js";
import { type HostFiles, hostFiles } from "./host-files.js";

const HELD_PIPE_MS = 250;

/** A sandbox for tests without a container: real processes of this machine, with no isolation whatever. */
export class MemorySandbox implements ToolSandbox {
  readonly id = "memory";
  readonly files: HostFiles = hostFiles;
  readonly #running = new Set<ChildProcess>();
  readonly #environment: NodeJS.ProcessEnv;

  constructor(
    environment: NodeJS.ProcessEnv = { PATH: process.env.PATH, HOME: "/proc/nonexistent", LANG: "C.UTF-8" },
  ) {
    this.#environment = environment;
  }

  get runningCount(): number {
    return this.#running.size;
  }

  spawn(argv: readonly string[], options: ToolSpawnOptions = {}): Promise<ToolProcess> {
    options.signal?.throwIfAborted();
    if (argv.length === 0 || argv.some((word) => word.includes("\0")))
      throw new BrigError("an argument contains NUL", { code: "exec.invalid" });
    const cwd = options.cwd ?? "/";
    if (!isDirectory(cwd))
      return Promise.resolve(refused(`the working directory ${cwd} cannot be entered: ENOENT`));
    const env = definedOnly({ ...this.#environment, ...options.env });
    const startFailure = findStartFailure(argv[0] ?? "", cwd, env);
    return Promise.resolve(
      startFailure === null
        ? this.#start(wrap(argv, options), { ...options, cwd, env })
        : unstarted(startFailure),
    );
  }

  isClosed = false;

  async close(): Promise<void> {
    this.isClosed = true;
    for (const child of this.#running) killGroup(child);
    await Promise.all(
      [...this.#running].map((child) => new Promise((resolve) => child.once("exit", resolve))),
    );
  }

  #start(argv: readonly string[], options: ToolSpawnOptions & { env: Record<string, string> }): ToolProcess {
    const [program = "", ...args] = argv;
    const startedAt = performance.now();
    const hasInput = options.stdin !== "closed";
    const child = spawn(program, args, {
      cwd: options.cwd,
      env: options.env,
      detached: true,
      stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"],
    });
    this.#running.add(child);
    const stdout = relay(child.stdout);
    const stderr = relay(child.stderr);
    let timedOut = false;
    let treeEnded = false;
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            timedOut = true;
            killGroup(child);
          }, options.timeoutMs);
    const abort = () => {
      killGroup(child);
    };
    options.signal?.addEventListener("abort", abort);
    const exit = new Promise<ToolExit>((resolve) => {
      let exitCode = 0;
      let signal: NodeJS.Signals | null = null;
      const finish = () => {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", abort);
        this.#running.delete(child);
        stdout.end();
        stderr.end();
        resolve({
          exitCode: timedOut ? 124 : exitCode,
          signal,
          timedOut,
          outOfMemory: false,
          treeEnded,
          causes: [],
          durationMs: performance.now() - startedAt,
          usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
          startFailure: null,
        });
      };
      child.once("exit", (code, endedBy) => {
        signal = endedBy;
        exitCode = endedBy === null ? (code ?? 0) : 128 + osConstants.signals[endedBy];
        setTimeout(() => {
          treeEnded = options.endsTree === true && killGroup(child);
          finish();
        }, HELD_PIPE_MS).unref();
      });
      if (options.endsTree !== true) child.once("close", finish);
    });
    return {
      stdin: child.stdin,
      stdout,
      stderr: options.pty !== undefined || options.mergeOutput ? null : stderr,
      exit,
      async kill(one) {
        if (one !== undefined) return void (child.pid !== undefined && process.kill(-child.pid, one));
        killGroup(child);
        await exit;
      },
    };
  }
}

function wrap(argv: readonly string[], { pty, mergeOutput }: ToolSpawnOptions): readonly string[] {
  if (pty !== undefined) {
    const command = argv.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
    return ["script", "-qfec", `stty rows ${pty.rows} cols ${pty.cols}; exec ${command}`, "/dev/null"];
  }
  return mergeOutput ? ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh", ...argv] : argv;
}

function relay(source: Readable | null): PassThrough {
  const target = new PassThrough();
  source?.pipe(target, { end: false });
  source?.on("error", () => undefined);
  return target;
}

function unstarted(startFailure: ToolStartFailure): ToolProcess {
  const stdout = new PassThrough();
  stdout.end();
  const exitCode = startFailure.errno === "EACCES" ? 126 : 127;
  return {
    stdin: null,
    stdout,
    stderr: null,
    exit: Promise.resolve({
      exitCode,
      signal: null,
      timedOut: false,
      outOfMemory: false,
      treeEnded: false,
      causes: [],
      durationMs: 0,
      usage: { userMs: 0, systemMs: 0, maxRssBytes: 0 },
      startFailure,
    }),
    kill: () => Promise.resolve(),
  };
}

/** As the runner answers: only after the process was handed out. */
function refused(message: string): ToolProcess {
  const error = new BrigError(message, { code: "exec.bad-cwd", errno: "ENOENT" });
  const stdout = new PassThrough();
  stdout.on("error", () => undefined);
  stdout.destroy(error);
  const exit = Promise.reject(error);
  exit.catch(() => undefined);
  return { stdin: null, stdout, stderr: null, exit, kill: () => Promise.resolve() };
}

function findStartFailure(
  program: string,
  cwd: string,
  env: Record<string, string>,
): ToolStartFailure | null {
  const candidates = program.includes("/")
    ? [resolve(cwd, program)]
    : (env.PATH ?? "").split(":").map((directory) => join(directory, program));
  const present = candidates.filter((path) => exists(path, constants.F_OK));
  if (present.length === 0)
    return { stage: "exec", errno: "ENOENT", message: `${program}: command not found` };
  if (present.some((path) => exists(path, constants.X_OK))) return null;
  return { stage: "exec", errno: "EACCES", message: `${program}: permission denied` };
}

function exists(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** False where nothing of it was left. */
function killGroup(child: ChildProcess): boolean {
  try {
    return child.pid !== undefined && process.kill(-child.pid, "SIGKILL");
  } catch {
    return false;
  }
}

function definedOnly(env: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
