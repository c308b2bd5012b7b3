import { type Chooser, type ListEntry, pressInList, wantsMore, withEntries } from "./chooser.js";
import type { Key } from "./input/keys.js";
import type { Tone } from "./screen/styled-line.js";

/** A question that a person has to answer before work can continue. Its texts are safe for a terminal. */
export interface Question {
  lines: readonly { text: string; tone: Tone }[];
  choices: readonly Choice[];
  /** Whether a line of text is an answer too. */
  takesText: boolean;
  /** The label of the Escape key. */
  dismissal: string;
  /** A list to choose from, to which all keys belong while it is shown. Default: none. */
  list?: Chooser | undefined;
}

interface Choice {
  key: string;
  label: string;
}

/** Has the person choose from a list. Null if nothing is chosen. */
export async function chooseFrom(
  questions: PendingQuestions,
  { title, list, dismissal = "nothing" }: { title: string; list: Chooser; dismissal?: string },
  options: { signal?: AbortSignal | undefined; source?: ListSource | null } = {},
): Promise<string | null> {
  const lines = [{ text: title, tone: "warning" as const }];
  const answer = await questions.ask({ lines, choices: [], takesText: false, dismissal, list }, options);
  return answer.kind === "choice" ? answer.choice.key : null;
}

export type Answer =
  | { kind: "choice"; choice: Choice }
  | { kind: "text"; text: string }
  | { kind: "dismissed" };

/** A key is an answer only after this long without typing; an earlier one was meant for the draft. */
const SETTLE_MS = 400;

/** Entries of a list that are read only as far as a person looks. Ends with the last one. */
export type ListSource = AsyncIterator<readonly ListEntry[]>;

interface PendingQuestion {
  question: Question;
  settle(answer: Answer): void;
  fail(error: unknown): void;
  /** Null where everything has been read. */
  source: ListSource | null;
}

/**
 * Questions that wait for a person, shown one after the other. Keys that are pressed while the person is
 * typing are not taken for an answer: a `y` that was meant to begin the next prompt must not approve
 * anything.
 */
export class PendingQuestions {
  readonly #waiting: PendingQuestion[] = [];
  readonly #now: () => number;
  readonly #onChange: (question: Question | null) => void;
  #quietSince = 0;

  constructor(onChange: (question: Question | null) => void, now: () => number) {
    this.#onChange = onChange;
    this.#now = now;
  }

  get current(): Question | null {
    return this.#waiting[0]?.question ?? null;
  }

  /** Returns whether a key that was pressed now is an answer. If not, the wait starts again. */
  takesKeys(): boolean {
    const isRead = this.#now() - this.#quietSince >= SETTLE_MS;
    if (!isRead) this.#quietSince = this.#now();
    return isRead;
  }

  /** Gives a key to the list of the current question. Returns whether there is one. */
  press(key: Key): boolean {
    const [pending] = this.#waiting;
    const list = pending?.question.list;
    if (pending === undefined || list === undefined) return false;
    const pressed = pressInList(list, key);
    if (pressed.kind === "list") this.#changeList(pending, pressed.list);
    else if (pressed.kind === "dismissed") pending.settle({ kind: "dismissed" });
    else pending.settle({ kind: "choice", choice: pressed.entry });
    return true;
  }

  /**
   * An abort removes the question and rejects with the reason of the abort. `source` has further entries for the
   * list; an error of it is one of the question.
   */
  async ask(
    question: Question,
    { signal, source = null }: { signal?: AbortSignal | undefined; source?: ListSource | null } = {},
  ): Promise<Answer> {
    signal?.throwIfAborted();
    return await new Promise<Answer>((resolve, reject) => {
      const withdraw = () => pending.fail(signal?.reason);
      const end = () => {
        signal?.removeEventListener("abort", withdraw);
        this.#remove(pending);
        pending.source?.return?.().catch(() => undefined);
        pending.source = null;
      };
      const pending: PendingQuestion = {
        question,
        source,
        settle: (answer) => {
          end();
          resolve(answer);
        },
        fail: (error) => {
          end();
          reject(error);
        },
      };
      signal?.addEventListener("abort", withdraw, { once: true });
      this.#waiting.push(pending);
      if (this.#waiting.length === 1) this.#showNext();
      void this.#read(pending);
    });
  }

  answer(answer: Answer): void {
    this.#waiting[0]?.settle(answer);
  }

  #changeList(pending: PendingQuestion, list: Chooser): void {
    pending.question = { ...pending.question, list };
    if (pending === this.#waiting[0]) this.#onChange(pending.question);
    void this.#read(pending);
  }

  /** Reads on while a person may soon see the end of the list. */
  async #read(pending: PendingQuestion): Promise<void> {
    const { source, question } = pending;
    const { list } = question;
    if (source === null || list === undefined || list.isReading || !wantsMore(list)) return;
    this.#changeList(pending, { ...list, isReading: true });
    try {
      const { done, value } = await source.next();
      const now = pending.question.list;
      if (pending.source === null || now === undefined) return;
      if (done === true) pending.source = null;
      this.#changeList(pending, withEntries(now, done === true ? null : value));
    } catch (error) {
      if (pending.source !== null) pending.fail(error);
    }
  }

  #remove(pending: PendingQuestion): void {
    const at = this.#waiting.indexOf(pending);
    this.#waiting.splice(at, 1);
    if (at === 0) this.#showNext();
  }

  #showNext(): void {
    this.#quietSince = this.#now();
    this.#onChange(this.current);
  }
}
