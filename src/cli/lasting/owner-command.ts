import { PassThrough, Readable, Writable } from "node:stream";
import { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import {
  commandDirectory,
  describeError,
  openFlaggedSandbox,
  publishPorts,
  resumeFlaggedSandbox,
  write,
} from "../../command/index.js";
import { readEnvironment } from "../../lib/env.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import type { Sandbox } from "../../sandbox/index.js";
import { aboutOf, connectEngine, endLasting } from "../../sandbox/index.js";
import type { LastingPlace, OpenedLasting, UpRequest } from "../../services/index.js";
import { asSentError, openSealKey, serveOwner, UNLIMITED_MS, watchOwner } from "../../services/index.js";
import { addUpOptions, requireLasting, type UpFlags } from "./up-flags.js";

const LINGER_MS = 30_000;
/** How much is written to the log in all: nobody may ever read it, or remove it. */
const MAX_LOGGED_CHARS = 1024 * 1024;

/** Keeps the sandboxes of `brig up`. Started by it, and not meant for people. */
export function defineOwner(command: Command, context: CliContext): void {
  command.action(async () => await own(context));
}

async function own(context: CliContext): Promise<void> {
  const { environment, signal, stdin, stdout } = context;
  const { brigHome } = environment;
  const sealKey = await openSealKey(environment, stdin);
  const draining = new AbortController();
  using _first = context.drainFirst(() => draining.abort());
  const tell = async (line: object) => await write(stdout, `${JSON.stringify(line)}\n`);
  try {
    const isOwner = await serveOwner({
      ...{ brigHome, lingerMs: LINGER_MS, drain: sharedSignal(draining.signal), signal },
      open: async (request, how) => await openAs(request, how, { brigHome, sealKey }),
      resume: async (request, how) => await resumeAs(request, how, { brigHome, sealKey }),
      discard: async (request, how) => await discardAs(request, how, brigHome),
      watch: () => watchOwner(environment, sealKey),
      onListening: () => void tell({ state: "listening" }),
      onWarning: logTo(context),
    });
    if (!isOwner) await tell({ state: "other" });
  } catch (error) {
    await tell({ error: asSentError(error) });
    throw error;
  }
}

function logTo({ stderr }: CliContext): (error: unknown) => void {
  let left = MAX_LOGGED_CHARS;
  return (error) => {
    const text = `${new Date().toISOString()} ${describeError(error, { showsCauses: true })}`.slice(0, left);
    left -= text.length;
    if (text !== "") stderr.write(text);
  };
}

interface OwnPlace {
  brigHome: string;
  sealKey: Buffer;
}

async function openAs(
  request: UpRequest,
  how: LastingPlace,
  { brigHome, sealKey }: OwnPlace,
): Promise<OpenedLasting> {
  const { flags, context } = await readRequest(brigHome, request, how);
  const sandbox = await openFlaggedSandbox(flags, context, { lasting: how.directory, sealKey });
  try {
    await publishPorts(sandbox, publishedPorts(flags, request), context);
    if (flags.setup !== undefined) {
      const { runFlaggedSetup } = await import("../../command/index.js");
      await runFlaggedSetup(sandbox, { flags, printsOutput: false }, context);
    }
  } catch (error) {
    await sandbox[Symbol.asyncDispose]();
    throw error;
  }
  return asOpened(sandbox, flags);
}

/** Ports are published again. What another program has taken meanwhile is only told: the sandbox is of more use without it than gone. */
async function resumeAs(request: UpRequest, how: LastingPlace, { brigHome, sealKey }: OwnPlace) {
  const { flags, context } = await readRequest(brigHome, request, how);
  const resumed = await resumeFlaggedSandbox(flags, context, { lasting: how.directory, sealKey });
  const { sandbox, commands } = resumed;
  await publishPorts(sandbox, publishedPorts(flags, request), context).catch((error: unknown) =>
    how.tell(describeError(error, { showsCauses: false })),
  );
  return { ...asOpened(sandbox, flags), commands };
}

async function discardAs(request: UpRequest, how: LastingPlace, brigHome: string): Promise<void> {
  const { context } = await readRequest(brigHome, request, how);
  const engine = await connectEngine({ env: context.environment });
  await endLasting(how.directory, { engine, brigHome, warn: (warning) => how.tell(String(warning)) });
}

async function readRequest(
  brigHome: string,
  { argv, cwd, variables, env }: UpRequest,
  progress: Omit<LastingPlace, "directory">,
): Promise<{ flags: UpFlags; context: CliContext }> {
  const context = contextOf({ cwd, variables: { ...variables, BRIG_HOME: brigHome } }, progress);
  const command = new Command("up").exitOverride();
  addUpOptions(command).action(() => undefined);
  await command.parseAsync([...argv], { from: "user" });
  // Files of variables were read by the client: they may be pipes of its own.
  const flags: UpFlags = { ...command.opts<UpFlags>(), env, envFile: undefined };
  requireLasting(flags);
  return { flags, context };
}

function publishedPorts({ publish }: UpFlags, { name: session, isFork }: UpRequest) {
  return { publish: isFork === true ? [] : publish, session, command: "brig up" };
}

function asOpened(sandbox: Sandbox, flags: UpFlags): OpenedLasting {
  return {
    ...{ sandbox, about: aboutOf(sandbox) },
    workingDirectory: commandDirectory(flags) ?? sandbox.workingDirectory,
    idleMs: flags.idle ?? UNLIMITED_MS,
    maxLifeMs: flags.maxLife ?? UNLIMITED_MS,
  };
}

/** What a command would have of its process, for a request that comes from another one. */
function contextOf(
  { cwd, variables }: { cwd: string; variables: Record<string, string> },
  { signal, tell }: { signal: AbortSignal; tell: (text: string) => void },
): CliContext {
  const stderr = new Writable({
    decodeStrings: false,
    write(text: string | Buffer, _encoding, done) {
      tell(text.toString());
      done();
    },
  });
  return {
    ...{ stdin: Readable.from([]), stdout: new PassThrough().resume(), cwd, signal },
    ...{ stderr, essentialStderr: stderr },
    environment: readEnvironment(variables, { cwd: () => cwd }),
    interruption: () => null,
    beforeEnd: () => undefined,
    drainFirst: () => ({ [Symbol.dispose]: () => undefined }),
    onExit: () => ({ [Symbol.dispose]: () => undefined }),
    interrupt: () => undefined,
    suspend: () => undefined,
    chooseOutput: () => undefined,
    setExitStatus: () => undefined,
  };
}
