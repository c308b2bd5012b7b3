import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { BrigError } from "../../errors.js";
import type { CliContext, InputStream } from "../context.js";
import { write } from "../render.js";

/** More than any secret takes. */
const maxBytes = 64 * 1024;

/**
 * A secret from standard input: all of it, or one line that is typed at a terminal and not shown. Ctrl-C and ctrl-D end the question
 * with `aborted`, too long an input with `usage.invalid`.
 */
export async function readHidden(question: string, context: CliContext): Promise<string> {
  context.signal.throwIfAborted();
  if (context.stdin.isTTY !== true) return await readAll(context.stdin, context.signal);
  try {
    return await readLineUnseen(question, context);
  } finally {
    await write(context.stderr, "\n");
  }
}

async function readAll(stdin: InputStream, signal: AbortSignal): Promise<string> {
  const stop = () => stdin.destroy();
  signal.addEventListener("abort", stop, { once: true });
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of stdin) {
      length += chunk.length;
      if (length > maxBytes) throw new BrigError("standard input is too long", { code: "usage.invalid" });
      chunks.push(Buffer.from(chunk));
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
  signal.throwIfAborted();
  return Buffer.concat(chunks).toString("utf8");
}

/**
 * Readline edits the line and puts the terminal back; what it would echo goes nowhere. The question comes after the echo is off: who
 * sees it may type at once.
 */
async function readLineUnseen(question: string, { stdin, stderr, signal }: CliContext): Promise<string> {
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
