import { spawn } from "node:child_process";
import { BrigError } from "../../errors.js";
import { TimeLimit } from "../../lib/time/time-limit.js";

/** Runs git in one repository of this machine. It obeys no configuration that could run other programs. */
export interface HostGit {
  /** Absolute. */
  readonly directory: string;
  /** Runs a command to its end. Error: `branch.refused` if git cannot be run or the limits are exceeded. */
  run(args: readonly string[], options?: GitRun): Promise<GitResult>;
}

interface GitRun {
  input?: Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Settings that override those of the repository. */
  settings?: readonly (readonly [name: string, value: string])[] | undefined;
}

export interface GitResult {
  exitCode: number;
  stdout: Buffer;
  /** The last part of what git wrote to it. */
  stderr: string;
}

const LIMIT_MS = 10 * 60_000;
const STDOUT_MAX_BYTES = 64 * 1024 * 1024;
const STDERR_MAX_BYTES = 16 * 1024;
/** Limits git's memory, because a delta of a few kilobytes can expand to an object of gigabytes. */
const MEMORY_KIB = 2 * 1024 * 1024;

/** Sets the memory limit, where the system has one, and then becomes git. */
const LIMITED = 'ulimit -v "$0" 2>/dev/null; exec "$@"';

/**
 * These settings and variables keep the configuration of a repository, of the user and of the machine from
 * running a program, reaching a network, or changing which object a name stands for.
 */
const SETTINGS: readonly (readonly [string, string])[] = [
  ["core.hooksPath", "/dev/null"],
  ["core.fsmonitor", "false"],
  ["core.alternateRefsCommand", ""],
  ["core.logAllRefUpdates", "false"],
  ["core.commitGraph", "false"],
  ["core.multiPackIndex", "false"],
  ["core.packedGitWindowSize", "32m"],
  ["core.packedGitLimit", "256m"],
  ["core.bigFileThreshold", "64m"],
  ["pack.threads", "1"],
  ["protocol.allow", "never"],
  ["gc.auto", "0"],
  ["maintenance.auto", "false"],
  ["credential.helper", ""],
];

const ENVIRONMENT: Readonly<Record<string, string>> = {
  // Git finds its own programs without PATH.
  PATH: "/usr/bin:/bin",
  HOME: "/nonexistent",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_GRAFT_FILE: "/dev/null",
  GIT_ALLOW_PROTOCOL: "",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_COMMITTER_NAME: "brig",
  GIT_COMMITTER_EMAIL: "brig@localhost",
};

/** `program` is what `findGit` found. */
export function hostGit(directory: string, { program }: { program: string }): HostGit {
  return {
    directory,
    run: async (args, { input = Buffer.alloc(0), settings = [] } = {}) => {
      using limit = new TimeLimit(LIMIT_MS);
      const child = spawn(
        "/bin/sh",
        ["-c", LIMITED, String(MEMORY_KIB), program, `--git-dir=${directory}`, "--no-pager", ...args],
        {
          cwd: "/",
          env: { ...ENVIRONMENT, ...configuration([...SETTINGS, ...settings]) },
          stdio: ["pipe", "pipe", "pipe"],
          // A process group of its own, so that Ctrl-C at the terminal does not end git in the middle of its
          // work.
          detached: true,
        },
      );
      const kill = () => {
        try {
          if (child.pid !== undefined && child.exitCode === null && child.signalCode === null)
            process.kill(-child.pid, "SIGKILL");
        } catch {
          // It has ended.
        }
      };
      limit.signal.addEventListener("abort", kill, { once: true });
      const ended = new Promise<number>((resolve, reject) => {
        child.once("error", reject);
        child.once("close", (code) => resolve(code ?? 128));
      });
      ended.catch(() => undefined);
      const stdout: Buffer[] = [];
      let stdoutBytes = 0;
      child.stdout.on("data", (data: Buffer) => {
        stdoutBytes += data.length;
        if (stdoutBytes > STDOUT_MAX_BYTES) kill();
        else stdout.push(data);
      });
      const stderr = new TailBytes(STDERR_MAX_BYTES);
      child.stderr.on("data", (data: Buffer) => stderr.push(data));
      // Git may end before it has read everything; its exit code says why.
      child.stdin.on("error", () => undefined);
      try {
        await feed(child.stdin, input);
      } catch (error) {
        kill();
        await ended.catch(() => undefined);
        throw error;
      }
      const exitCode = await ended.catch((cause: unknown) => {
        throw refused("git cannot be started on this machine", "install git", cause);
      });
      if (limit.isOver) throw refused(`git took longer than ${LIMIT_MS / 60_000} minutes`, TOO_MUCH);
      if (stdoutBytes > STDOUT_MAX_BYTES) throw refused("git printed too much", TOO_MUCH);
      if (exitCode === 127) throw refused("git was not found on this machine", "install git, or check PATH");
      return { exitCode, stdout: Buffer.concat(stdout), stderr: stderr.take() };
    },
  };
}

const TOO_MUCH = "the commits stay in the sandbox only; the repository of this machine is unchanged";

async function feed(
  stdin: NodeJS.WritableStream,
  input: Uint8Array | AsyncIterable<Uint8Array>,
): Promise<void> {
  const pieces = input instanceof Uint8Array ? [input] : input;
  for await (const piece of pieces) {
    if (!stdin.writable) break;
    if (stdin.write(piece)) continue;
    await new Promise<void>((resolve) => {
      const done = () => {
        stdin.off("drain", done).off("close", done).off("error", done);
        resolve();
      };
      stdin.on("drain", done).on("close", done).on("error", done);
    });
  }
  stdin.end();
}

/**
 * Passes settings as environment variables. In an argument `-c name=value`, a name with an equals sign would
 * be cut.
 */
function configuration(settings: readonly (readonly [string, string])[]): Record<string, string> {
  const pairs = settings.flatMap(([name, value], at) => [
    [`GIT_CONFIG_KEY_${at}`, name],
    [`GIT_CONFIG_VALUE_${at}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(settings.length), ...Object.fromEntries(pairs) };
}

/** Git's own message about a failure, as one line that is safe to show. */
export function reasonOf({ stderr }: GitResult): string {
  const lines = stderr.split("\n").filter((line) => line !== "");
  const chosen = lines.filter((line) => /^(?:error|fatal): /.test(line)).slice(0, 2);
  const text = (chosen.length > 0 ? chosen : lines.slice(-2)).join("; ");
  return text === "" ? "git gave no reason" : JSON.stringify(text.slice(0, 500)).slice(1, -1);
}

/** Keeps the last bytes of a stream. */
export class TailBytes {
  readonly #maxBytes: number;
  #kept = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  push(data: Buffer): void {
    const all = Buffer.concat([this.#kept, data]);
    this.#kept = Buffer.from(all.subarray(Math.max(0, all.length - this.#maxBytes)));
  }

  take(): string {
    return this.#kept.toString("utf8");
  }
}

/** Error: `branch.refused`. */
export function refused(message: string, hint?: string, cause?: unknown): BrigError {
  return new BrigError(message, { code: "branch.refused", hint, cause });
}
