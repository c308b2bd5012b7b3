import { TimeLimit } from "../../lib/time/time-limit.js";
import type { AskAboutHost, AskedHost, HostAnswer } from "../../sandbox/index.js";
import type { AskedUser, UserQuestion } from "../../tools/index.js";

/** A connection waits so long for an answer. */
const PATIENCE_MS = 5 * 60_000;
/** About one command, so that no program can flood the user with questions. */
const MAX_QUESTIONS = 10;
const REASON_CHARS = 300;
const ID = "network";

const ONCE = "yes, for this command";
const SESSION = "yes, until the session ends";
const ALWAYS = "yes, always in this directory";
const NO = "no";

interface QuestionOptions {
  /** Signal of the current turn. Between turns nobody is asked. */
  signal: () => AbortSignal | null;
  /** Keeps a host for later sessions. Without it no such answer is offered. */
  remember?: ((host: string) => Promise<void>) | undefined;
}

/**
 * Asks the user about hosts that the allow-list does not have. Connections that wait for the same host share a question,
 * but a yes that is only for one command counts for no other.
 */
export class HostQuestions {
  readonly #user: AskedUser;
  readonly #signal: QuestionOptions["signal"];
  readonly #remember: QuestionOptions["remember"];
  readonly #waiting = new Map<string, { answer: Promise<HostAnswer>; command: number | null }>();
  /** Answers given to the processes of a command, by its channel and the host. */
  readonly #answered = new Map<string, HostAnswer>();
  readonly #counts = new Map<number | null, number>();

  constructor(user: AskedUser, { signal, remember }: QuestionOptions) {
    this.#user = user;
    this.#signal = signal;
    this.#remember = remember;
  }

  readonly ask: AskAboutHost = async (asked) => {
    const { host, owner } = asked;
    const command = owner?.channel ?? null;
    const key = command === null ? null : `${command} ${host}`;
    for (;;) {
      const earlier = key === null ? undefined : this.#answered.get(key);
      if (earlier !== undefined) return earlier;
      const other = this.#waiting.get(host);
      const answer = await (other?.answer ?? this.#begin(asked, command));
      // A yes for one command is none for another, which then asks by itself.
      if (other !== undefined && answer.kind === "once" && (command === null || other.command !== command))
        continue;
      if (key !== null && answer.kind !== "not-asked") this.#answered.set(key, answer);
      return answer;
    }
  };

  #begin(asked: AskedHost, command: number | null): Promise<HostAnswer> {
    const answer = this.#question(asked).finally(() => this.#waiting.delete(asked.host));
    this.#waiting.set(asked.host, { answer, command });
    return answer;
  }

  async #question(asked: AskedHost): Promise<HostAnswer> {
    const turn = this.#signal();
    if (turn === null || turn.aborted || !this.#mayAsk(asked)) return { kind: "not-asked" };
    using limit = new TimeLimit(PATIENCE_MS, turn);
    try {
      const answers = await this.#user.ask([questionAbout(asked, this.#remember !== undefined)], limit);
      const text = answers?.[ID]?.[0] ?? null;
      if (text !== ALWAYS || this.#remember === undefined) return answerOf(text);
      await this.#remember(asked.host).catch(warn);
      return { kind: "session" };
    } catch {
      // The turn has ended, or nobody has answered.
      return { kind: "not-asked" };
    }
  }

  #mayAsk({ owner }: AskedHost): boolean {
    const channel = owner?.channel ?? null;
    const count = (this.#counts.get(channel) ?? 0) + 1;
    if (count > MAX_QUESTIONS) return false;
    this.#counts.set(channel, count);
    return true;
  }
}

/** The connection is allowed all the same, and the next session asks again. */
function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

function questionAbout({ host, isOwnMachine, owner }: AskedHost, canRemember: boolean): UserQuestion {
  const always = { label: ALWAYS, description: "later sessions in this directory may, too" };
  const who =
    owner === null
      ? "A program in the sandbox"
      : `The program ${JSON.stringify(owner.program)} in the sandbox`;
  const warning = isOwnMachine ? " This is a port of your own machine." : "";
  return {
    id: ID,
    header: "Network",
    question: `${who} wants to connect to ${host}, which the allow-list does not have.${warning} May it?`,
    options: [
      { label: ONCE, description: "its other connections to this host and port, too" },
      { label: SESSION, description: "every program may connect to this host and port" },
      { label: NO, description: "or type why not, for the agent to read" },
      // Last, so that the number of a no is the same wherever it is asked.
      ...(canRemember ? [always] : []),
    ],
  };
}

/** Anything but these labels is a no. */
function answerOf(text: string | null): HostAnswer {
  if (text === ONCE) return { kind: "once" };
  if (text === SESSION) return { kind: "session" };
  if (text === null || text === NO) return { kind: "declined", reason: null };
  return { kind: "declined", reason: text.replace(/\s+/g, " ").trim().slice(0, REASON_CHARS) };
}
