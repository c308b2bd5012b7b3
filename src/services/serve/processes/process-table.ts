import { randomBytes } from "node:crypto";
import { BrigError, isBrigError } from "../../../errors.js";
import { formatBytes } from "../../../lib/bytes.js";
import type { ResumedCommand, Sandbox, SandboxProcess, SpawnOptions } from "../../../sandbox/index.js";
import { forgetLasting, lastingDirectoryOf, spawnLasting } from "../../../sandbox/index.js";
import type { MemoryShare } from "../http/memory-budget.js";
import { busy, type Refusal } from "../http/refusal.js";
import type { ProcessRequest } from "../wire/process-schemas.js";
import { OutputBudget } from "./output-budget.js";
import { KEPT_OUTPUT_BYTES, OutputLog, type OutputStreamName } from "./output-log.js";
import { ServedProcess } from "./served-process.js";

export interface ProcessTableOptions {
  sandbox: Sandbox;
  /** Where processes start whose requests do not say it. */
  cwd: string;
  /** For all processes. */
  env: Readonly<Record<string, string>>;
  /** Ends all processes, and is the error of later ones. */
  signal: AbortSignal;
  /** Called for each process; what it returns is disposed of when the process has ended. */
  hold: () => Disposable;
  /** How processes are started with which another owner can go on. Default: none can. */
  noted?: NotedCommands | undefined;
  /** What the outputs of further sandboxes are kept in too. Default: these outputs have a budget of their own. */
  outputs?: OutputBudget | undefined;
  /** Where what is kept of processes counts besides their output. Default: nowhere. */
  memory?: MemoryShare | undefined;
  /** Called with the output of all processes. Default: nobody is. */
  onOutput?: ((stream: OutputStreamName, data: Uint8Array) => void) | undefined;
}

/** Commands that are noted by their names, so that they outlive their owner. */
export interface NotedCommands {
  spawn(command: {
    name: string;
    argv: readonly string[];
    options: SpawnOptions;
    about: unknown;
  }): Promise<SandboxProcess>;
  forget(name: string): void;
}

/** Undefined where they end with their owner. */
export function notedIn(sandbox: Sandbox): NotedCommands | undefined {
  if (lastingDirectoryOf(sandbox) === null) return undefined;
  return {
    spawn: (command) => spawnLasting(sandbox, command),
    forget: (name) => void forgetLasting(sandbox, name),
  };
}

const MAX_RUNNING = 512;
const MAX_ENDED = 1024;
/** The arguments of all processes that are known, together. */
const MAX_ARGUMENT_BYTES = 16 * 1024 * 1024;
/** The output of all processes that are known, together, the place around it included. */
const KEPT_OUTPUT_OF_ALL_BYTES = 2 * KEPT_OUTPUT_BYTES;
const RETRY_SECONDS = 1;

/** The processes of one sandbox that run on by themselves, and the latest of those that have ended. */
export class ProcessTable {
  readonly #options: ProcessTableOptions;
  readonly #processes = new Map<string, ServedProcess>();
  readonly #budget: OutputBudget;
  #startingCount = 0;
  #argumentBytes = 0;

  constructor(options: ProcessTableOptions) {
    this.#options = options;
    this.#budget = new OutputBudget(KEPT_OUTPUT_OF_ALL_BYTES, options.outputs);
  }

  /**
   * Starts a process. A missing program is a process that ends with 127. Errors: `exec.bad-cwd`, `exec.invalid`; a refusal with 429
   * for too many; `sandbox.gone`; the signal's reason, and then nothing runs.
   */
  async start(
    request: ProcessRequest,
    { signal, purpose = null }: { signal?: AbortSignal | undefined; purpose?: string | null } = {},
  ): Promise<ServedProcess> {
    this.#options.signal.throwIfAborted();
    const argumentBytes = bytesOf(request.argv);
    this.#makeRoom(argumentBytes);
    this.#options.memory?.take(argumentBytes);
    this.#startingCount++;
    this.#argumentBytes += argumentBytes;
    try {
      return await this.#spawn(request, { signal, purpose });
    } catch (error) {
      this.#giveBack(argumentBytes);
      throw error;
    } finally {
      this.#startingCount--;
    }
  }

  /** Goes on with the processes of an owner that is gone. */
  resume(commands: readonly ResumedCommand[]): void {
    for (const { name: id, argv, options, process, lost, inputBytes, about } of commands) {
      this.#argumentBytes += bytesOf(argv);
      const held = this.#options.hold();
      const { purpose } = about as ProcessAbout;
      this.#add(process, {
        ...{ id, argv, hasTerminal: options.pty !== undefined, held, purpose },
        lostBytes: lost.stdout + lost.stderr,
        inputBytes: inputBytes ?? 0,
      });
    }
  }

  /** Error: `serve.unknown`. */
  get(id: string): ServedProcess {
    const process = this.#processes.get(id);
    if (process !== undefined) return process;
    throw new BrigError("there is no such process", {
      code: "serve.unknown",
      hint: `only the latest ${MAX_ENDED} of those that have ended are known`,
    });
  }

  /** Frees what is kept of them, whose sandbox has ended. */
  clear(): void {
    for (const { output } of this.list()) output.clear();
  }

  /** In the order in which they were started. */
  list(): ServedProcess[] {
    return [...this.#processes.values()];
  }

  get runningCount(): number {
    return this.list().filter(({ isRunning }) => isRunning).length;
  }

  async #spawn(
    request: ProcessRequest,
    { signal, purpose }: { signal: AbortSignal | undefined; purpose: string | null },
  ): Promise<ServedProcess> {
    const { sandbox, cwd, hold, noted, signal: ending } = this.#options;
    const { argv, stdin, pty, timeoutMs, endsTree, mergeOutput } = request;
    const env = {
      ...this.#options.env,
      ...Object.fromEntries(
        Object.entries(request.env ?? {}).map(([name, value]) => [name, value ?? undefined]),
      ),
    };
    const held = hold();
    try {
      if (request.cwd !== undefined) await requireDirectory(sandbox, request.cwd, signal);
      signal?.throwIfAborted();
      const id = newProcessId();
      const options = {
        cwd: request.cwd ?? cwd,
        env,
        stdin,
        pty,
        timeoutMs,
        endsTree,
        mergeOutput,
        signal: ending,
      };
      const about: ProcessAbout = { purpose };
      const spawned = await (noted?.spawn({ name: id, argv, options, about }) ??
        sandbox.spawn(argv, options));
      const hasTerminal = pty !== undefined;
      return this.#add(spawned, { id, argv, hasTerminal, held, lostBytes: 0, inputBytes: 0, purpose });
    } catch (error) {
      held[Symbol.dispose]();
      throw error;
    }
  }

  #add(spawned: SandboxProcess, { held, lostBytes, ...about }: AddedProcess): ServedProcess {
    const output = new OutputLog(KEPT_OUTPUT_BYTES, this.#budget);
    output.skip(lostBytes);
    const process = new ServedProcess(spawned, { ...about, output, onOutput: this.#options.onOutput });
    this.#processes.set(process.id, process);
    void process.ended.catch(() => undefined).then(() => held[Symbol.dispose]());
    return process;
  }

  /** Forgets the oldest of those that have ended. Error: a refusal with 429. */
  #makeRoom(argumentBytes: number): void {
    const ended = this.list().filter(({ isRunning }) => !isRunning);
    const runningCount = this.#processes.size - ended.length + this.#startingCount;
    const isTooMuch = () => this.#argumentBytes + argumentBytes > MAX_ARGUMENT_BYTES;
    for (const [index, process] of ended.entries())
      if (ended.length - index >= MAX_ENDED || isTooMuch()) this.#forget(process);
    if (runningCount >= MAX_RUNNING) throw noRoom(`${MAX_RUNNING} processes run in this sandbox already`);
    if (isTooMuch())
      throw noRoom(
        `the arguments of all processes of this sandbox may take ${formatBytes(MAX_ARGUMENT_BYTES)} together, and do`,
      );
  }

  #forget({ id, argv, output }: ServedProcess): void {
    this.#processes.delete(id);
    this.#giveBack(bytesOf(argv));
    output.clear();
    this.#options.noted?.forget(id);
  }

  #giveBack(argumentBytes: number): void {
    const { memory } = this.#options;
    this.#argumentBytes -= argumentBytes;
    memory?.giveBackTo(Math.max(0, memory.takenBytes - argumentBytes));
  }
}

/** What another owner has to know of a process. */
interface ProcessAbout {
  purpose: string | null;
}

interface AddedProcess extends ProcessAbout {
  id: string;
  argv: readonly string[];
  hasTerminal: boolean;
  held: Disposable;
  lostBytes: number;
  inputBytes: number;
}

function noRoom(message: string): Refusal {
  return busy(message, { status: 429, retrySeconds: RETRY_SECONDS });
}

function newProcessId(): string {
  return randomBytes(6).toString("hex");
}

function bytesOf(argv: readonly string[]): number {
  return argv.reduce((sum, argument) => sum + argument.length, 0);
}

/** Error: `exec.bad-cwd`. It is asked for before the start, because a process that has started is an answer. */
async function requireDirectory(
  { files }: Sandbox,
  path: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  try {
    // What comes after a slash can only be found in a directory that may be entered.
    await files.stat(`${path}/.`, { signal });
  } catch (error) {
    if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
    throw new BrigError(`the working directory ${path} cannot be entered: ${error.errno ?? error.message}`, {
      code: "exec.bad-cwd",
      hint: "it must exist inside the sandbox",
      errno: error.errno,
      cause: error,
    });
  }
}
