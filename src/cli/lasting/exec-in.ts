import { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { addSandboxOptions, ChangesWork, publishOption } from "../../command/index.js";
import { invalidUsage } from "../../errors.js";
import type { ExecResult, OnCopied, Sandbox, SandboxProcess } from "../../sandbox/index.js";
import type { ConnectedCommand, LastingRecord } from "../../services/index.js";
import {
  ConnectedProcess,
  connectedCommand,
  endedError,
  findLasting,
  OwnerClient,
  readLasting,
  sandboxPath,
} from "../../services/index.js";
import { nextOwner, reachOwner } from "./reach-owner.js";

/** The options of `brig exec` and `brig shell` that say something about the command. The others are about a sandbox that is yet to be opened. */
const OF_THE_COMMAND = ["in", "cd", "env", "envFile", "interactive", "tty", "timeout", "json", "detach"];

/** Error: `usage.invalid` for an option that a sandbox which is open cannot take. */
export function requireOfTheCommand(command: Command): void {
  refuseOptions(command, (name) => !OF_THE_COMMAND.includes(name));
}

/** Error: `usage.invalid` for an option of `brig run` that a sandbox which is open cannot take. */
export function requireOfTheModel(command: Command): void {
  const known = addSandboxOptions(new Command()).addOption(publishOption()).options;
  const ofSandboxes = new Set(known.map((option) => option.attributeName()));
  refuseOptions(command, (name) => ofSandboxes.has(name) && !OF_THE_COMMAND.includes(name));
}

function refuseOptions(command: Command, isRefused: (name: string) => boolean): void {
  const other = command.options.find((option) => {
    const name = option.attributeName();
    return isRefused(name) && command.getOptionValueSource(name) === "cli";
  });
  if (other === undefined) return;
  throw invalidUsage(
    `--in and ${other.long} cannot be combined: the sandbox is open already`,
    "give such options to brig up",
  );
}

type CommandOptions = NonNullable<Parameters<Sandbox["spawn"]>[1]>;

/** A lasting sandbox, as far as commands are run in it. */
export interface EnteredSandbox extends Pick<Sandbox, "spawn"> {
  record: LastingRecord;
  /** Runs a program to its end, without `output`, which repeats what the two others contain. */
  exec(
    argv: readonly string[],
    options: CommandOptions & { input: Uint8Array | undefined },
  ): Promise<Omit<ExecResult, "output">>;
  /** Starts a program that goes on when brig has ended. */
  start(argv: readonly string[], options: CommandOptions): Promise<{ id: string }>;
  /** Joins the shell that all who attach share. It goes on when the signal aborts. */
  attach(options: CommandOptions): SandboxProcess;
}

/** Errors: `sandbox.unknown`; `sandbox.gone` for one that has ended. */
export function runningRecord(wanted: string, { environment }: CliContext): LastingRecord {
  const record = findLasting(readLasting(environment.brigHome), wanted);
  if (record.state === "stopped") throw endedError(record);
  return record;
}

/** The owner of sandboxes that run. If it was killed, a new one notes what has become of them, and says so. */
export async function ownerNow(context: CliContext): Promise<OwnerClient> {
  const known = new OwnerClient(context.environment.brigHome);
  return (await known.state(context.signal)) === null ? await reachOwner(context) : known;
}

/** Errors: `sandbox.unknown`; `sandbox.gone` for one that has ended; `config.invalid`; `serve.unreachable`. */
export async function enterSandbox(wanted: string, context: CliContext): Promise<EnteredSandbox> {
  const record = runningRecord(wanted, context);
  const owner = await ownerNow(context);
  const place = (verb: string) => ({
    socketPath: owner.socket.path,
    path: `${sandboxPath(record.name)}/${verb}`,
    reopen: async () => await nextOwner(context),
  });
  const run = (command: ConnectedCommand, { signal }: CommandOptions) =>
    showStoring(context, (onCopied) => new ConnectedProcess(place("exec"), command, { signal, onCopied }));
  return {
    record,
    spawn: async (argv, options = {}) => run(connectedCommand(argv, options), options),
    async exec(argv, { input, ...options }) {
      const stdin = input === undefined ? "closed" : "pipe";
      const program = run({ ...connectedCommand(argv, { ...options, stdin }), keepsOutput: true }, options);
      program.stdin?.on("error", () => undefined);
      program.stdin?.end(input);
      return (await program.exit) as unknown as Omit<ExecResult, "output">;
    },
    async start(argv, options) {
      const program = run(
        // Nobody could say whether it has been started already.
        { ...connectedCommand(argv, { ...options, stdin: "closed" }), id: null, isDetached: true },
        options,
      );
      return (await program.exit) as unknown as { id: string };
    },
    attach: (options) =>
      new ConnectedProcess(place("attach"), { ...connectedCommand([], options), id: null }, options),
  };
}

/** In a copy-on-write workspace, what a command has changed is stored when it has ended. Shown on a terminal only: otherwise stderr belongs to the command. */
function showStoring(
  context: CliContext,
  start: (onCopied: OnCopied | undefined) => ConnectedProcess,
): ConnectedProcess {
  if (context.stderr.isTTY !== true) return start(undefined);
  let shown: ChangesWork | undefined;
  const started = start((copied) => {
    shown ??= new ChangesWork(context, "storing the changes", { followsOutput: true });
    shown.onCopied(copied);
  });
  const end = () => shown?.[Symbol.dispose]();
  started.exit.then(end, end);
  return started;
}
