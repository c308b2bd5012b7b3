import { createReadStream } from "node:fs";
import type { Command } from "commander";
import type { CliContext, OutputStream } from "../../command/index.js";
import { write } from "../../command/index.js";
import { errnoOf } from "../../lib/errno.js";
import { NeutralStream } from "../../lib/terminal/terminal.js";
import {
  endedError,
  findLasting,
  logFile,
  OwnerClient,
  passFrames,
  readLasting,
} from "../../services/index.js";

export function defineLogs(command: Command, context: CliContext): void {
  command
    .argument("<sandbox>", "its name, or its id or the start of that, as brig ps lists it")
    .option("-f, --follow", "go on until the sandbox ends")
    .addHelpText("after", HELP)
    .action(async (wanted: string, { follow = false }: { follow?: boolean }) => {
      await printLogs(wanted, { isFollowed: follow }, context);
    });
}

const HELP = `
It prints what all commands of the sandbox have printed, in the order in which that came: the latest 16 MiB. After brig stop it is still
there, until brig rm; if the process that kept the sandbox was killed, it is gone.`;

async function printLogs(
  wanted: string,
  { isFollowed }: { isFollowed: boolean },
  context: CliContext,
): Promise<void> {
  const { environment, signal, stdout, essentialStderr: stderr } = context;
  const { brigHome } = environment;
  const record = findLasting(readLasting(brigHome), wanted);
  const { name, state } = record;
  const outputs = { stdout: shownOn(stdout, context), stderr: shownOn(stderr, context) };
  const onOutput = async (stream: "stdout" | "stderr", bytes: Buffer) => await outputs[stream](bytes);
  const owner = state === "running" ? new OwnerClient(brigHome) : null;
  if (owner !== null && (await owner.state(signal)) !== null)
    return await owner.logs(name, { isFollowed, signal, onOutput });
  try {
    await passFrames(createReadStream(logFile(brigHome, name), { signal }), onOutput);
  } catch (error) {
    signal.throwIfAborted();
    // No command has printed anything.
    if (errnoOf(error) !== "ENOENT") throw error;
    if (owner !== null) throw endedError({ ...record, reason: "owner-killed" });
  }
}

/** Byte for byte to a pipe or file, and to a terminal with control sequences neutralised. */
function shownOn(stream: OutputStream, { environment }: CliContext): (bytes: Buffer) => Promise<void> {
  const neutral = stream.isTTY === true ? new NeutralStream({ colours: !environment.forbidsColor }) : null;
  return async (bytes) => await write(stream, neutral === null ? bytes : neutral.push(bytes));
}
