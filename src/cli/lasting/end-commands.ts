import type { Command } from "commander";
import type { CliContext } from "../../command/index.js";
import { ChangesWork, receiptText, say } from "../../command/index.js";
import type { OnCopied } from "../../sandbox/index.js";
import { findLasting, readLasting } from "../../services/index.js";
import { reachOwner } from "./reach-owner.js";

export function defineStop(command: Command, context: CliContext): void {
  command
    .argument("<sandbox...>", "names, or ids or the start of an id, as brig ps lists them")
    .addHelpText("after", STOP_HELP)
    .action(async (wanted: string[]) => {
      for (const name of namesOf(wanted, context)) {
        const owner = await reachOwner(context);
        const receipt = await shown(name, context, (onCopied) =>
          owner.stop(name, { signal: context.signal, onCopied }),
        );
        if (receipt !== null) await say(context.stderr, receiptText(receipt));
      }
    });
}

const STOP_HELP = `
It ends everything that runs in the sandbox and removes its container. The name stays taken, and brig ps --all lists it, until brig rm.
What the sandbox has written to the workspace stays there; of a copy-on-write one brig diff and brig apply take the changes.`;

export function defineRm(command: Command, context: CliContext): void {
  command
    .argument("<sandbox...>", "names, or ids or the start of an id, as brig ps lists them")
    .option("-f, --force", "forget the name also if the engine does not confirm that the sandbox has ended")
    .addHelpText("after", "\nA sandbox that runs is ended, with everything in it.")
    .action(async (wanted: string[], { force = false }: { force?: boolean }) => {
      for (const name of namesOf(wanted, context)) {
        const owner = await reachOwner(context);
        const receipt = await shown(name, context, (onCopied) =>
          owner.remove(name, { force, signal: context.signal, onCopied }),
        );
        if (receipt !== null) await say(context.stderr, receiptText(receipt));
      }
    });
}

async function shown<T>(
  name: string,
  context: CliContext,
  end: (onCopied: OnCopied | undefined) => Promise<T>,
): Promise<T> {
  using work = context.stderr.isTTY === true ? new ChangesWork(context, `ending ${name}`) : null;
  return await end(work?.onCopied);
}

/** Before anything is ended, all of them are known. Error: `sandbox.unknown`. */
function namesOf(wanted: readonly string[], { environment }: CliContext): string[] {
  const known = readLasting(environment.brigHome);
  return [...new Set(wanted.map((one) => findLasting(known, one).name))];
}
