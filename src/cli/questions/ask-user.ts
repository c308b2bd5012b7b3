import { createInterface, type Interface } from "node:readline";
import type { InputStream, OutputStream } from "../../command/index.js";
import { fitted } from "../../command/index.js";
import { neutralise, neutraliseLine } from "../../lib/terminal/terminal.js";
import { pause } from "../../lib/time/pause.js";
import type { AskedUser, UserQuestion } from "../../tools/index.js";

/**
 * Asks the model's questions on standard error. An answer is the number of a choice or any other text. To
 * decline, the user presses Ctrl-D, or Escape and then Enter. At a terminal, lines that were typed before the question
 * was shown are no answers.
 */
export function terminalUser(streams: { stdin: InputStream; stderr: OutputStream }): AskedUser {
  return {
    async ask(questions, { signal }) {
      signal?.throwIfAborted();
      const lines = createInterface({ input: streams.stdin, terminal: false });
      const abort = () => {
        lines.close();
      };
      signal?.addEventListener("abort", abort, { once: true });
      try {
        const typed = new TypedLines(lines);
        if (streams.stdin.isTTY === true) await typed.discard(SETTLE_MS, signal);
        const answers = await askAll(questions, { typed, target: streams.stderr });
        signal?.throwIfAborted();
        return answers;
      } finally {
        signal?.removeEventListener("abort", abort);
        lines.close();
      }
    },
  };
}

async function askAll(
  questions: readonly UserQuestion[],
  { typed, target }: { typed: TypedLines; target: OutputStream },
): Promise<Readonly<Record<string, readonly string[]>> | null> {
  const answers: [string, readonly string[]][] = [];
  for (const { id, header, question, options = [] } of questions) {
    const choices = options.map(
      ({ label, description }, index) =>
        `  ${index + 1}. ${neutraliseLine(label)} – ${neutraliseLine(description)}\n`,
    );
    target.write(fitted(target, `\n${neutraliseLine(header)}: ${neutralise(question)}\n${choices.join("")}`));
    const answer = await nonEmpty(typed, target);
    if (answer === null) return null;
    const chosen = /^\d+$/.test(answer) ? options[Number(answer) - 1] : undefined;
    answers.push([id, [chosen?.label ?? answer]]);
  }
  return Object.fromEntries(answers);
}

async function nonEmpty(typed: TypedLines, target: OutputStream): Promise<string | null> {
  for (;;) {
    target.write("Type a number, or your own answer: ");
    const line = await typed.next();
    if (line === null || line.trim() === ESCAPE) return null;
    if (line.trim() !== "") return line.trim();
  }
}

/** Input that comes this soon after a question was typed before the question could be read, as with approvals. */
const SETTLE_MS = 150;

/** brig reads whole lines here, so the Escape key arrives as a character of the line. */
const ESCAPE = "\u001b";

/** Lines of input one by one; a chunk of input may have several. */
class TypedLines {
  readonly #lines: string[] = [];
  #isOver = false;
  #wake: () => void = () => undefined;

  constructor(lines: Interface) {
    lines.on("line", (line) => {
      this.#lines.push(line);
      this.#wake();
    });
    lines.once("close", () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** Drops the lines that come in the next `ms` milliseconds. */
  async discard(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await pause(ms, signal);
    this.#lines.length = 0;
  }

  /** Null at the end of the input. */
  async next(): Promise<string | null> {
    while (this.#lines.length === 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.#lines.shift() ?? null;
  }
}
