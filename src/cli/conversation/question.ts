import type { Tone } from "./screen/styled-line.js";

/** A question that a person has to answer before work can continue. Its texts are safe for a terminal. */
export interface Question {
  lines: readonly { text: string; tone: Tone }[];
  choices: readonly Choice[];
  /** Whether a line of text is an answer too. */
  takesText: boolean;
  /** The label of the Escape key. */
  dismissal: string;
}

interface Choice {
  key: string;
  label: string;
}

export type Answer =
  | { kind: "choice"; choice: Choice }
  | { kind: "text"; text: string }
  | { kind: "dismissed" };

/** A key is an answer only after this long without typing; an earlier one was meant for the draft. */
const SETTLE_MS = 400;

interface PendingQuestion {
  question: Question;
  settle(answer: Answer): void;
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

  /** An abort removes the question and rejects with the reason of the abort. */
  async ask(question: Question, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Answer> {
    signal?.throwIfAborted();
    return await new Promise<Answer>((resolve, reject) => {
      const withdraw = () => {
        this.#remove(pending);
        reject(signal?.reason);
      };
      const pending: PendingQuestion = {
        question,
        settle: (answer) => {
          signal?.removeEventListener("abort", withdraw);
          this.#remove(pending);
          resolve(answer);
        },
      };
      signal?.addEventListener("abort", withdraw, { once: true });
      this.#waiting.push(pending);
      if (this.#waiting.length === 1) this.#showNext();
    });
  }

  answer(answer: Answer): void {
    this.#waiting[0]?.settle(answer);
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
