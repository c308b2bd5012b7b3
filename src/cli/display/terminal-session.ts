import { TerminalGuard } from "../../lib/terminal/terminal-guard.js";
import type { ExitStatus, PtySize, SandboxProcess } from "../../sandbox/sandbox-types.js";
import type { CliContext, OutputStream } from "../context.js";
import { write } from "../render.js";
import { passInput } from "../streams.js";

const usualSize: PtySize = { rows: 24, cols: 80 };

/** The size of the terminal behind a stream, or of a usual one. */
export function terminalSize({ isTTY, rows, columns }: OutputStream): PtySize {
  return isTTY === true && rows && columns ? { rows, cols: columns } : usualSize;
}

/**
 * Connects a program on a pseudo-terminal with the user's terminal until it ends: keys go in unchanged, ctrl-C and
 * ctrl-D too; the size follows the window; what comes out is guarded. The terminal is put back as it was on every path.
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
  if (isRaw) stdin.setRawMode?.(true);
  try {
    // Input that cannot be read any more means that the terminal is gone, which the signal of the context tells.
    if (takesInput && program.stdin) passInput(stdin, program.stdin).catch(() => undefined);
    const [status] = await Promise.all([program.exit, showOutput(program, stdout)]);
    return status;
  } finally {
    stdout.off("resize", resize);
    if (isRaw) stdin.setRawMode?.(false);
    stdin.pause();
  }
}

/** To a terminal through the guard, to a pipe or file byte for byte. */
async function showOutput(program: SandboxProcess, stdout: OutputStream): Promise<void> {
  const guard = stdout.isTTY === true ? new TerminalGuard() : null;
  try {
    for await (const chunk of program.stdout) await write(stdout, guard === null ? chunk : guard.push(chunk));
  } finally {
    if (guard !== null) await write(stdout, guard.end());
  }
}
