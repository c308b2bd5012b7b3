import type { Tone } from "./screen/styled-line.js";

/** Something a person has to decide before work goes on. Its texts are safe for a terminal. */
export interface Question {
  lines: readonly { text: string; tone: Tone }[];
  /** Taken by one key. */
  choices: readonly Choice[];
  /** Also takes a line of text. */
  takesText: boolean;
  /** What Escape means. */
  dismissal: string;
}

interface Choice {
  /** A single character. */
  key: string;
  label: string;
}

export type Answer =
  | { kind: "choice"; choice: Choice }
  | { kind: "text"; text: string }
  /** Escape: no answer. */
  | { kind: "dismissed" };

/** A person at rest for so long has read a question; what they type before that was meant for the draft. */
const SETTLE_MS = 400;

interface Asked {
  question: Question;
  settle(answer: Answer): void;
}

/**
 * Questions wait here for a person, one after the other. Keys that come while somebody is in the middle of typing are not taken for an
 * answer: a `y` that was to begin the next prompt must not approve anything.
 */
export class QuestionDesk {
  readonly #waiting: Asked[] = [];
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

  /** Whether a key is an answer by now. A key that is not starts the wait again. */
  takesKeys(): boolean {
    const isRead = this.#now() - this.#quietSince >= SETTLE_MS;
    if (!isRead) this.#quietSince = this.#now();
    return isRead;
  }

  /** An abort takes the question away and rejects with its reason. */
  async ask(question: Question, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Answer> {
    signal?.throwIfAborted();
    return await new Promise<Answer>((resolve, reject) => {
      const takeAway = () => {
        this.#remove(asked);
        reject(signal?.reason);
      };
      const asked: Asked = {
        question,
        settle: (answer) => {
          signal?.removeEventListener("abort", takeAway);
          this.#remove(asked);
          resolve(answer);
        },
      };
      signal?.addEventListener("abort", takeAway, { once: true });
      this.#waiting.push(asked);
      if (this.#waiting.length === 1) this.#showNext();
    });
  }

  answer(answer: Answer): void {
    this.#waiting[0]?.settle(answer);
  }

  #remove(asked: Asked): void {
    const at = this.#waiting.indexOf(asked);
    this.#waiting.splice(at, 1);
    if (at === 0) this.#showNext();
  }

  #showNext(): void {
    this.#quietSince = this.#now();
    this.#onChange(this.current);
  }
}
