import { z } from "zod";
import { isBrigError } from "../../../errors.js";
import { MAX_TIMEOUT_MS, type Sandbox } from "../../../sandbox/index.js";
import type { ServedProcess } from "../../serve/processes/served-process.js";
import { ConnectFailure, type MessageStream } from "./connect-protocol.js";
import { resolvePath } from "./place-paths.js";

const text = z.string().regex(/^[^\0]*$/, "must not contain NUL");
const cells = z.int().min(1).max(65_535);
const ptySchema = z.object({ size: z.object({ cols: cells, rows: cells }) });

const configSchema = z.object({
  cmd: text.min(1),
  args: z.array(text).max(4096).default([]),
  envs: z.record(z.string().regex(/^[^=\0]+$/, "must be the name of a variable"), text).default({}),
  cwd: text.nullish(),
});
type Config = z.output<typeof configSchema>;

export const startSchema = z.object({
  process: configSchema,
  pty: ptySchema.nullish(),
  tag: z.string().max(256).nullish(),
  stdin: z.boolean().nullish(),
});

const selectorSchema = z
  .object({ pid: z.int().min(0).optional(), tag: z.string().optional() })
  .refine(({ pid, tag }) => pid !== undefined || tag !== undefined, "must have a pid or a tag");
export const selectedSchema = z.object({ process: selectorSchema });
const bytes = z.string().transform((encoded) => Buffer.from(encoded, "base64"));
export const inputSchema = selectedSchema.extend({
  input: z
    .object({ stdin: bytes.optional(), pty: bytes.optional() })
    .refine(({ stdin, pty }) => stdin !== undefined || pty !== undefined, "must have stdin or pty"),
});
export const updateSchema = selectedSchema.extend({ pty: ptySchema.nullish() });
export const signalSchema = selectedSchema.extend({
  signal: z.union([
    z.enum(["SIGNAL_SIGTERM", "SIGNAL_SIGKILL"]),
    z.literal(15).transform(() => "SIGNAL_SIGTERM" as const),
    z.literal(9).transform(() => "SIGNAL_SIGKILL" as const),
  ]),
});

/** What a client has started, in its own words. */
interface Started {
  config: Config;
  tag: string | undefined;
}

/** The processes of one sandbox as clients of E2B see them. */
export class EnvdProcesses {
  /** Those that a service before this one had started are known by their arguments only. */
  readonly #started = new WeakMap<ServedProcess, Started>();
  /** Up to where the output of each has been sent: a client that comes later goes on there. */
  readonly #sent = new WeakMap<ServedProcess, number>();
  /** Those whose end a client was told of. */
  readonly #told = new WeakSet<ServedProcess>();
  #hasBash = false;

  /** What is started in place of a shell that the image may not have. */
  async requestOf(
    { process, pty, stdin }: z.output<typeof startSchema>,
    {
      sandbox,
      home,
      timeoutMs,
      signal,
    }: {
      sandbox: Sandbox;
      home: string;
      timeoutMs: number | null;
      signal: AbortSignal;
    },
  ) {
    const { cmd, args, envs: env, cwd } = process;
    const program = cmd === BASH && !(await this.#findBash(sandbox, signal)) ? SH : cmd;
    return {
      argv: [program, ...args],
      cwd: resolvePath(cwd ?? "", home),
      env,
      stdin: pty || stdin === true ? ("pipe" as const) : ("closed" as const),
      pty: pty?.size,
      timeoutMs: timeoutMs === null ? undefined : Math.min(timeoutMs, MAX_TIMEOUT_MS),
    };
  }

  remember(process: ServedProcess, { process: config, tag }: z.output<typeof startSchema>): void {
    this.#started.set(process, { config, tag: tag ?? undefined });
  }

  list(processes: readonly ServedProcess[]) {
    return processes
      .filter(({ isRunning }) => isRunning)
      .map((process) => {
        const { config, tag } = this.#startedAs(process);
        return { config, pid: pidOf(process), ...(tag !== undefined && { tag }) };
      });
  }

  /** Error: `not_found`, also for one that has ended. */
  running(processes: readonly ServedProcess[], selector: z.output<typeof selectorSchema>): ServedProcess {
    return this.#find(processes, selector, ({ isRunning }) => isRunning);
  }

  /** Also finds one that has ended while no client was connected to it. */
  connectable(processes: readonly ServedProcess[], selector: z.output<typeof selectorSchema>): ServedProcess {
    return this.#find(processes, selector, (one) => one.isRunning || !this.#told.has(one));
  }

  /** Sends the output from where the last client was left, and the end. Error: the signal's reason. */
  async follow(
    process: ServedProcess,
    { stream, signal }: { stream: MessageStream; signal: AbortSignal },
  ): Promise<void> {
    await stream.send(eventOf({ start: { pid: pidOf(process) } }));
    let at = this.#sent.get(process) ?? 0;
    for await (const { stream: name, data, lost } of process.output.follow(at, signal)) {
      await stream.send(eventOf({ data: { [name]: data.toString("base64") } }));
      at += lost + data.length;
      this.#sent.set(process, Math.max(at, this.#sent.get(process) ?? 0));
    }
    const { timedOut } = process.record;
    this.#told.add(process);
    if (timedOut)
      throw new ConnectFailure("the time of the command was over, so it was ended", {
        code: "deadline_exceeded",
      });
    await stream.send(eventOf({ end: endOf(process) }));
  }

  #find(
    processes: readonly ServedProcess[],
    { pid, tag }: z.output<typeof selectorSchema>,
    isWanted: (process: ServedProcess) => boolean,
  ): ServedProcess {
    const found = processes.findLast(
      (one) => (pid === undefined ? this.#startedAs(one).tag === tag : pidOf(one) === pid) && isWanted(one),
    );
    if (found !== undefined) return found;
    const named = pid === undefined ? `the tag ${JSON.stringify(tag)}` : `the pid ${pid}`;
    throw new ConnectFailure(`no process with ${named} is running`, { code: "not_found" });
  }

  #startedAs(process: ServedProcess): Started {
    const [cmd = "", ...args] = process.argv;
    return this.#started.get(process) ?? { config: { cmd, args, envs: {}, cwd: undefined }, tag: undefined };
  }

  async #findBash({ files }: Sandbox, signal: AbortSignal): Promise<boolean> {
    if (this.#hasBash) return true;
    try {
      await files.stat(BASH, { signal });
      this.#hasBash = true;
    } catch (error) {
      if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
    }
    return this.#hasBash;
  }
}

/** The client asks for this one, whatever the image has. */
const BASH = "/bin/bash";
const SH = "/bin/sh";

/** A number for the id, which is random: the same one whoever asks, and after a restart of the service. */
function pidOf({ id }: ServedProcess): number {
  return (Number.parseInt(id.slice(0, 8), 16) >>> 1) + 1;
}

function eventOf(event: object): object {
  return { event };
}

function endOf({ record: { exitCode, signal } }: ServedProcess) {
  if (signal !== null) {
    const status = `signal: ${signal}`;
    return { exitCode: SIGNALLED, exited: false, status, error: status };
  }
  const status = `exit status ${exitCode}`;
  return { exitCode, exited: true, status, ...(exitCode !== 0 && { error: status }) };
}

/** What E2B says in place of an exit code. */
const SIGNALLED = -1;
