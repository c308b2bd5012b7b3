import { PassThrough } from "node:stream";
import type { CliContext, Interruption } from "../../src/command/context.js";
import { readEnvironment, withColours } from "../../src/lib/env.js";

export interface TestContext extends CliContext {
  readonly stdin: PassThrough;
  exitStatus: number;
  /** Everything written to stdout and stderr so far. */
  written(): { stdout: string; stderr: string };
}

export interface TestContextOptions {
  variables?: Record<string, string>;
  /** The input and the outputs claim to be terminals. */
  isTerminal?: boolean;
  /** As if this had happened before the start. */
  interruption?: Interruption & { reason: unknown };
}

/** A command's surroundings without a process. */
export function testContext(options: TestContextOptions = {}): TestContext {
  const { variables = {}, isTerminal = false, interruption = null } = options;
  const stdout = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const stderr = Object.assign(new PassThrough(), { isTTY: isTerminal });
  const context: TestContext = {
    stdin: Object.assign(new PassThrough(), { isTTY: isTerminal }),
    stdout,
    stderr,
    essentialStderr: stderr,
    chooseOutput({ isQuiet, color }) {
      const { environment } = context;
      if (isQuiet) Object.assign(context, { stderr: new PassThrough().resume() });
      if (color !== "auto") Object.assign(context, { environment: withColours(environment, color) });
    },
    cwd: "/start",
    environment: readEnvironment({ HOME: "/home/user", ...variables }),
    signal: interruption === null ? new AbortController().signal : AbortSignal.abort(interruption.reason),
    interruption: () => interruption,
    suspend: () => undefined,
    drainFirst: () => ({ [Symbol.dispose]: () => undefined }),
    onExit: () => ({ [Symbol.dispose]: () => undefined }),
    beforeEnd: () => undefined,
    interrupt: () => undefined,
    exitStatus: 0,
    setExitStatus(status) {
      this.exitStatus = status;
    },
    written: () => ({ stdout: text(stdout), stderr: text(stderr) }),
  };
  return context;
}

const seen = new WeakMap<PassThrough, string>();

function text(stream: PassThrough): string {
  const all = (seen.get(stream) ?? "") + String(stream.read() ?? "");
  seen.set(stream, all);
  return all;
}
