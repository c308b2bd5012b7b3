import { TerminalGuard } from "../lib/terminal/terminal-guard.js";
import type { ExitStatus, PtySize, SandboxProcess } from "../sandbox/index.js";
import type { CliContext, InputStream, OutputStream } from "./context.js";
import { write } from "./render.js";
import { passInput, unreadableInput } from "./streams.js";

const usualSize: PtySize = { rows: 24, cols: 80 };

/** The size of the stream's terminal; 24 rows and 80 columns if it is none. */
export function terminalSize({ isTTY, rows, columns }: OutputStream): PtySize {
  return isTTY === true && rows && columns ? { rows, cols: columns } : usualSize;
}

/**
 * Connects a program on a pseudo-terminal with the user's terminal until the program ends. Keys are passed on
 * unchanged, ctrl-C and ctrl-D too, and the size follows the window. Output to a terminal goes through a
 * `TerminalGuard`. Always restores the terminal.
 */
export async function attachTerminal(
  program: SandboxProcess,
  context: CliContext,
  { takesInput }: { takesInput: boolean },
): Promise<ExitStatus> {
  const { stdin, stdout } = context;
  const resize = () => program.resize(terminalSize(stdout));
  const isRaw = takesInput && stdin.isTTY === true;
  stdout.on("resize", resize);
  // The window may have changed while the program was being started, when nobody listened yet.
  resize();
  if (isRaw) stdin.setRawMode?.(true);
  try {
    const ended = Promise.all([program.exit, showOutput(program, stdout)]);
    const [status] = await Promise.race([ended, ...(takesInput ? [unreadable(stdin, program)] : [])]);
    return status;
  } finally {
    stdout.off("resize", resize);
    if (isRaw) stdin.setRawMode?.(false);
    stdin.pause();
  }
}

/** Passes the input on. Settles only if it cannot be read: then the program is ended, too. */
async function unreadable(stdin: InputStream, program: SandboxProcess): Promise<never> {
  if (program.stdin !== null)
    try {
      await passInput(stdin, program.stdin);
    } catch (cause) {
      // If it is a terminal, that is gone, and SIGHUP aborts the context's signal.
      if (stdin.isTTY !== true) {
        await program.kill("SIGHUP");
        throw unreadableInput(cause);
      }
    }
  return await new Promise<never>(() => undefined);
}

async function showOutput(program: SandboxProcess, stdout: OutputStream): Promise<void> {
  const guard = stdout.isTTY === true ? new TerminalGuard() : null;
  try {
    for await (const chunk of program.stdout) await write(stdout, guard === null ? chunk : guard.push(chunk));
  } finally {
    if (guard !== null) await write(stdout, guard.end());
  }
}
