import { createInterface } from "node:readline";
import type { CliContext } from "../../command/index.js";
import { write } from "../../command/index.js";
import { BrigError } from "../../errors.js";

/** Asks a person at the terminal, who answers with one line. Errors: `aborted` for ctrl-C and ctrl-D; the signal's reason. */
export async function askLine(
  question: string,
  { stdin, stderr, signal }: Pick<CliContext, "stdin" | "stderr" | "signal">,
): Promise<string> {
  signal.throwIfAborted();
  const lines = createInterface({ input: stdin, output: stderr, terminal: true, historySize: 0 });
  const stop = () => lines.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await new Promise<string>((resolve, reject) => {
      lines.once("SIGINT", () => reject(aborted("interrupted by ctrl-C")));
      lines.once("close", () => reject(signal.aborted ? signal.reason : aborted("nobody has answered")));
      lines.question(question, resolve);
    });
  } finally {
    signal.removeEventListener("abort", stop);
    lines.close();
    await write(stderr, "");
  }
}

function aborted(message: string): BrigError {
  return new BrigError(message, { code: "aborted" });
}
