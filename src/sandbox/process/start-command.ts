import { FrameType } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { SecretMask } from "../egress/secrets/secret-mask.js";
import type { CallCause } from "../output/call-cause.js";
import type { CommandEnd } from "../output/command-end.js";
import type { SpawnOptions } from "../sandbox-types.js";
import { Command } from "./command.js";
import { exitStatus, startError } from "./exit-record.js";
import { encodeSpawn } from "./spawn-request.js";

/** The settings and connections that all commands of a session share. */
export interface CommandContext {
  link: RunnerLink;
  cwd: string;
  env: Readonly<Record<string, string>>;
  /** The sandbox's allow-list at work. */
  egress?: CommandEgress | undefined;
  /** Hides the sandbox's secrets in the output of its commands. Absent without secrets. */
  mask?: SecretMask | undefined;
  /** Whether requests are still sent once the link takes no others. */
  isLast?: true | undefined;
  /** Called when the runner cannot end a process tree, so that the container has to be killed. */
  onStuck(): void;
}

interface CommandEgress {
  /** Attempts of the channel's processes belong to the call from now on. */
  nameCall(channel: number, callId: string): void;
  /** A text about the refusals, for the end of the command's output; may be empty. */
  textFor(command: { channel: number; startedAtMs: number; isOnTerminal: boolean }): string;
  /** The refusals to processes of the channel. */
  causesFor(channel: number): CallCause[];
  /** Error: `sandbox.canary-sent`. */
  requireNoCanarySent(): Promise<void>;
}

interface StartOptions extends Omit<SpawnOptions, "stdin"> {
  hasStdin: boolean;
  onOutput(data: Buffer, isStderr: boolean): unknown;
}

export interface StartedCommand {
  command: Command;
  /** Errors: `exec.bad-cwd`, `exec.invalid`, the signal's reason after an abort, `sandbox.gone`. */
  exit: Promise<CommandEnd>;
  /** The text that brig adds to the output of the command when it has ended; may be empty. */
  notes(): string;
}

/** Sends the request for a command. Errors: `exec.invalid`, or the signal's reason. */
export function startCommand(
  context: CommandContext,
  argv: readonly string[],
  { hasStdin, onOutput, ...options }: StartOptions,
): StartedCommand {
  options.signal?.throwIfAborted();
  const { timeoutMs, signal, callId } = options;
  const cwd = options.cwd ?? context.cwd;
  const payload = encodeSpawn({
    argv,
    cwd,
    env: options.env ? { ...context.env, ...options.env } : context.env,
    timeoutMs,
    pty: options.pty,
    hasStdin,
    mergeOutput: options.mergeOutput ?? false,
    endsTree: options.endsTree ?? false,
  });
  context.link.beforeCommand?.();
  const startedAtMs = Date.now();
  const isOnTerminal = options.pty !== undefined;
  const masked = context.mask?.output(onOutput) ?? null;
  const command = new Command(
    context.link,
    { type: FrameType.spawn, payload, timeoutMs, signal },
    {
      onOutput: masked === null ? onOutput : (data, isStderr) => masked.take(data, isStderr),
      onStuck: context.onStuck,
      onChannel(channel) {
        if (callId !== undefined) context.egress?.nameCall(channel, callId);
      },
    },
  );
  const ended = masked === null ? command.ended : command.ended.finally(() => masked.end());
  const exit = ended.then(async (record) => {
    await context.egress?.requireNoCanarySent();
    signal?.throwIfAborted();
    const failure = startError(record, { argv, cwd });
    if (failure) throw failure;
    if (record.treeLeft) context.onStuck();
    const status = exitStatus(record, String(argv[0]));
    const refused = status.exitCode === 0 ? [] : (context.egress?.causesFor(command.channel) ?? []);
    return { ...status, causes: [...status.causes, ...refused] };
  });
  const notes = () => {
    const { channel, leftoversNote } = command;
    return leftoversNote + (context.egress?.textFor({ channel, startedAtMs, isOnTerminal }) ?? "");
  };
  return { command, exit, notes };
}
