import { shellQuote } from "../../../lib/shell-quote.js";

/** One command of a sandbox, for somebody who looks at what runs in it. */
export interface SeenCommand {
  /** As a shell would take it; a long one is cut. It may have any characters. */
  text: string;
  startedAtMs: number;
  /** Null while it runs. */
  end: CommandEnding | null;
}

export interface CommandEnding {
  atMs: number;
  /** Null if it could not be said any more, as for a command whose client has gone. */
  exitCode: number | null;
  signal: string | null;
  timedOut: boolean;
}

const MAX_ENDED = 50;
const MAX_TEXT_CHARS = 400;

/** The commands that calls run to their end: those that run, and the latest of those that have ended. */
export class CommandLog {
  readonly #running = new Set<SeenCommand>();
  readonly #ended: SeenCommand[] = [];

  /** Notes a command until it has ended, and how. */
  async noted<T extends Omit<CommandEnding, "atMs">>(
    argv: readonly string[],
    running: Promise<T>,
  ): Promise<T> {
    const command: SeenCommand = { text: commandText(argv), startedAtMs: Date.now(), end: null };
    this.#running.add(command);
    let ending: Omit<CommandEnding, "atMs"> = { exitCode: null, signal: null, timedOut: false };
    try {
      const result = await running;
      ending = result;
      return result;
    } finally {
      const { exitCode, signal, timedOut } = ending;
      command.end = { atMs: Date.now(), exitCode, signal, timedOut };
      this.#running.delete(command);
      this.#ended.push(command);
      if (this.#ended.length > MAX_ENDED) this.#ended.shift();
    }
  }

  get runningCount(): number {
    return this.#running.size;
  }

  /** In the order of their starts, those that have ended first. */
  list(): SeenCommand[] {
    return [...this.#ended, ...this.#running];
  }
}

/** A copy, because a part of a text keeps the whole of it in memory, and a client may send megabytes. */
export function commandText(argv: readonly string[]): string {
  let text = "";
  for (const argument of argv) {
    if (text.length > MAX_TEXT_CHARS) break;
    text += `${text === "" ? "" : " "}${shellQuote([argument.slice(0, MAX_TEXT_CHARS + 1)])}`;
  }
  const isCut = text.length > MAX_TEXT_CHARS;
  return Buffer.from(isCut ? `${text.slice(0, MAX_TEXT_CHARS)}…` : text).toString();
}
