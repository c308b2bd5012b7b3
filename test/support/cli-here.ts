import { EventEmitter } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { Script } from "node:vm";
import { type BrigOptions, onTestRuntime, program } from "./cli.js";

const directory = dirname(program);
const require = createRequire(program);

/** What a program that ran here has printed, and the exit status that its process would have. */
export interface EndedHere {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** A program that runs here. */
export interface RunningHere extends Promise<EndedHere> {
  /** For the test to write to, with `holdsInputOpen`. */
  readonly stdin: PassThrough;
  readonly stdout: PassThrough;
  readonly stderr: PassThrough;
  /** That of the process of the test, to which the sandboxes belong. */
  readonly pid: number;
  /** Does what the signal does to a process that listens to it. */
  kill(signal: NodeJS.Signals): void;
}

/**
 * Runs the built program as `brig` of cli.ts does, but in this process, which saves half a second of a processor: Node need not start, and V8 need
 * not compile the program again. The program has its own modules and its own `process`, so it shares nothing with the test or with another run.
 *
 * It is not for a test that is about the process: one that needs its id, its open files, its memory, a terminal or a real signal. The sandboxes
 * belong to this process, so that nothing ends them when the program does not.
 */
export function brigHere(args: string[], options: BrigOptions = {}): RunningHere {
  const { stdin, stdout, stderr, events, ended } = new ProcessHere(onTestRuntime(args), options);
  const kill = (signal: NodeJS.Signals) => void events.emit(signal, signal);
  return Object.assign(ended, { stdin, stdout, stderr, pid: process.pid, kill });
}

/** What a program sees as its process: the real one, except for what a test gives and looks at. */
class ProcessHere {
  readonly stdin = new PassThrough();
  readonly stdout = new PassThrough();
  readonly stderr = new PassThrough();
  readonly events = new EventEmitter();
  readonly ended: Promise<EndedHere>;
  readonly #args: string[];
  readonly #options: BrigOptions;

  constructor(args: string[], options: BrigOptions) {
    this.#args = args;
    this.#options = options;
    this.ended = this.#run();
  }

  async #run(): Promise<EndedHere> {
    const { keepsOutput = true, input = "", holdsInputOpen = false } = this.#options;
    if (!holdsInputOpen || input !== "") this.stdin.end(input);
    const stdout = collect(this.stdout, keepsOutput);
    const stderr = collect(this.stderr, true);
    const exitCode = await new Promise<number>((resolve, reject) => {
      const seen = this.#seenBy(resolve);
      try {
        load(entryOf(readFileSync(program, "utf8")), { process: seen, loaded: new Map() });
      } catch (error) {
        reject(error);
      }
    });
    return { exitCode, stdout: stdout(), stderr: stderr() };
  }

  #seenBy(end: (status: number) => void): NodeJS.Process {
    const { cwd = process.cwd(), env = {} } = this.#options;
    const { events, stdin, stdout, stderr } = this;
    events.on("warning", ({ name, message }: Error) =>
      stderr.write(`(node:${process.pid}) ${name}: ${message}\n`),
    );
    const own: Record<string, unknown> = {
      stdin,
      stdout,
      stderr,
      argv: [process.execPath, program, ...this.#args],
      env: { ...process.env, ...env },
      cwd: () => cwd,
      exit: end,
      kill: (pid: number, signal: NodeJS.Signals | 0 = "SIGTERM") =>
        pid === process.pid && signal !== 0 ? events.emit(signal, signal) : process.kill(pid, signal),
      emitWarning: (warning: string | Error) =>
        void events.emit("warning", typeof warning === "string" ? new Error(warning) : warning),
    };
    for (const name of listening) {
      const method = events[name] as (...args: unknown[]) => unknown;
      own[name] = method.bind(events);
    }
    return instead(process, own);
  }
}

const listening = [
  "addListener",
  "emit",
  "listenerCount",
  "listeners",
  "off",
  "on",
  "once",
  "prependListener",
  "removeAllListeners",
  "removeListener",
] as const;

/** `real`, except for these properties and what is set later. */
function instead<T extends object>(real: T, own: Record<PropertyKey, unknown>): T {
  const get = (name: PropertyKey) => (name in own ? own[name] : Reflect.get(real, name, real));
  return new Proxy(own, {
    get: (_, name) => get(name),
    set: (_, name, value) => {
      own[name] = value;
      return true;
    },
    has: (_, name) => name in own || name in real,
    ownKeys: () => [...new Set([...Reflect.ownKeys(own), ...Reflect.ownKeys(real)])],
    getOwnPropertyDescriptor: (_, name) =>
      name in own || name in real
        ? { configurable: true, enumerable: true, get: () => get(name) }
        : undefined,
  }) as T;
}

/** Without decoding what may end within a character. */
function collect(stream: PassThrough, keeps: boolean): () => string {
  const chunks: Buffer[] = [];
  if (keeps) stream.on("data", (chunk: Buffer | string) => chunks.push(Buffer.from(chunk)));
  return () => Buffer.concat(chunks).toString();
}

interface Run {
  process: NodeJS.Process;
  loaded: Map<string, { exports: unknown }>;
}

/** The chunk that the launcher (scripts/bundle/launcher.cjs) begins with. */
function entryOf(launcher: string): string {
  const entry = /\bload\("(\.\/chunk-[^"]+)"\)/.exec(launcher)?.[1];
  if (entry === undefined) throw new Error(`no chunk is loaded by ${program}`);
  return entry;
}

/** Loads a chunk as the launcher does, but with another `process`. */
function load(name: string, run: Run): unknown {
  if (name.endsWith(".mjs")) throw new Error(`${name} needs a process of its own: it draws on the terminal`);
  if (name === "process" || name === "node:process") return run.process;
  // These two read the environment of the real process.
  if (name === "os" || name === "node:os") {
    const { TMPDIR = os.tmpdir(), HOME = os.homedir() } = run.process.env;
    return { ...os, tmpdir: () => TMPDIR, homedir: () => HOME };
  }
  if (!name.startsWith("./chunk-")) return require(name);
  const earlier = run.loaded.get(name);
  if (earlier !== undefined) return earlier.exports;
  const module = { exports: {} };
  run.loaded.set(name, module);
  const chunk = compiled(name)(run.process, instead(globalThis, { process: run.process }));
  chunk(module.exports, (next) => load(next, run), module, join(directory, name), directory);
  return module.exports;
}

type Chunk = (
  exports: object,
  load: (name: string) => unknown,
  module: { exports: unknown },
  ...names: string[]
) => void;

type ChunkFor = (process: NodeJS.Process, global: typeof globalThis) => Chunk;

const scripts = new Map<string, Script>();

function compiled(name: string): ChunkFor {
  const known = scripts.get(name);
  const script = known ?? new Script(wrapped(name), { filename: `brig/${name.slice(2)}` });
  scripts.set(name, script);
  return script.runInThisContext() as ChunkFor;
}

function wrapped(name: string): string {
  const code = readFileSync(join(directory, name), "utf8");
  // A comment or a line end may come first, after which "return" would return nothing.
  return `(function (process, globalThis) { return (${code.replace(/^#!.*/, "")}\n) })`;
}
