import { Transform } from "node:stream";
import type { Command } from "commander";
import type { CliContext, InputStream } from "../../command/index.js";
import { attachTerminal, terminalSize } from "../../command/index.js";
import { AnySignal } from "../../lib/time/any-signal.js";

export function defineAttach(command: Command, context: CliContext): void {
  command
    .argument("<sandbox>", "its name, or its id or the start of that, as brig ps lists it")
    .addHelpText("after", HELP)
    .action(async (wanted: string) => context.setExitStatus(await attach(wanted, context)));
}

const HELP = `
All who attach to a sandbox share one shell, which goes on when they leave: ctrl-p ctrl-q. It begins with the first one, and its
end ends brig attach with the same exit status. For a shell of your own: brig shell --in NAME.`;

async function attach(wanted: string, context: CliContext): Promise<number> {
  const { enterSandbox } = await import("./exec-in.js");
  const sandbox = await enterSandbox(wanted, context);
  const left = new AbortController();
  using ends = new AnySignal([context.signal, left.signal]);
  const { TERM = "xterm" } = context.environment.variables;
  const shell = sandbox.attach({ signal: ends.signal, pty: terminalSize(context.stdout), env: { TERM } });
  const stdin = leavingInput(context.stdin, () => left.abort());
  const { stdout, stderr, cwd, environment } = context;
  try {
    const session = { ...context, stdin, stdout, stderr, cwd, environment };
    return (await attachTerminal(shell, session, { takesInput: true })).exitCode;
  } catch (error) {
    if (left.signal.aborted && !context.signal.aborted) return 0;
    throw error;
  }
}

const [CTRL_P, CTRL_Q] = [0x10, 0x11];

/** The input, without the keys with which somebody leaves. Control-p alone waits for the next key, as it does with Docker. */
function leavingInput(stdin: InputStream, leave: () => void): InputStream {
  let waits = false;
  const keys = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const passed: number[] = [];
      for (const key of chunk) {
        if (waits && key === CTRL_Q) {
          leave();
          break;
        }
        if (waits) passed.push(CTRL_P);
        waits = key === CTRL_P;
        if (!waits) passed.push(key);
      }
      done(null, Buffer.from(passed));
    },
    // The input of a script may end before the shell does.
    flush: () => undefined,
  });
  stdin.once("error", (error) => keys.destroy(error));
  stdin.pipe(keys);
  const { isTTY } = stdin;
  return Object.assign(keys, {
    ...(isTTY === true && { isTTY, setRawMode: (isRaw: boolean) => stdin.setRawMode?.(isRaw) }),
    pause() {
      stdin.pause();
      return Transform.prototype.pause.call(keys);
    },
  });
}
