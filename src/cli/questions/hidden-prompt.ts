import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import type { CliContext } from "../../command/index.js";
import { ENDS_WITH_INPUT, noteWait, readInput, write } from "../../command/index.js";
import { BrigError, invalidUsage } from "../../errors.js";

const maxBytes = 64 * 1024;

/**
 * Reads a secret from standard input: at a terminal one line, which is not shown; otherwise everything.
 * Ctrl-C and ctrl-D throw `aborted`, input that is too long throws `usage.invalid`.
 */
export async function readHidden(question: string, context: CliContext): Promise<string> {
  context.signal.throwIfAborted();
  if (context.stdin.isTTY !== true) {
    const tooLong = () => invalidUsage(`standard input has more than ${maxBytes} bytes`);
    using _ = noteWait(context.stderr, { awaited: "reading from standard input", hint: ENDS_WITH_INPUT });
    return (await readInput(context.stdin, { signal: context.signal, maxBytes, tooLong })).toString("utf8");
  }
  try {
    return await readLineUnseen(question, context);
  } finally {
    await write(context.essentialStderr, "\n");
  }
}

/**
 * Readline edits the line and restores the terminal; its echo is discarded. The question is written after the
 * echo is off, because a person may type as soon as they see it.
 */
async function readLineUnseen(
  question: string,
  { stdin, essentialStderr: stderr, signal }: CliContext,
): Promise<string> {
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: nowhere, terminal: true, historySize: 0 });
  const stop = () => lines.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const typed = new Promise<string>((resolve, reject) => {
      lines.once("line", resolve);
      lines.once("SIGINT", () => reject(aborted("interrupted by ctrl-C")));
      lines.once("close", () => reject(signal.aborted ? signal.reason : aborted("no API key was entered")));
    });
    const [line] = await Promise.all([typed, write(stderr, question)]);
    return line;
  } finally {
    signal.removeEventListener("abort", stop);
    lines.close();
  }
}

function aborted(message: string): BrigError {
  return new BrigError(message, { code: "aborted" });
}
