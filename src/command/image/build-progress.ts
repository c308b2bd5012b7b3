import { createProgress, type Progress, type ProgressTarget } from "../../lib/terminal/progress.js";
import { formatDuration } from "../../lib/time/durations.js";
import type { ImageProgress } from "../../sandbox/index.js";

/** Whoever waits no longer than this is told nothing. */
const QUIET_MS = 2_000;
const REDRAW_MS = 1_000;

/** The beginning of a step, as BuildKit and the classic builder say it. */
const STEP = /^(?:Step [0-9]+\/[0-9]+ : |\[(?:[^\]]* )?[0-9]+\/[0-9]+\] )(.*)$/s;

/** How far a build is. */
export class BuildSteps {
  readonly #total: number;
  readonly #beganAt: number;
  #stepBeganAt: number;
  #begun = 0;
  #current = "";

  /** @param total The most steps that it may have: stages that nothing needs are left out. */
  constructor(total: number, now: number) {
    this.#total = total;
    this.#beganAt = now;
    this.#stepBeganAt = now;
  }

  /** True if a step begins with this line of the engine. */
  take(line: string, now: number): boolean {
    const [, instruction] = STEP.exec(line) ?? [];
    if (instruction === undefined) return false;
    this.#begun += 1;
    this.#stepBeganAt = now;
    this.#current = instruction;
    return true;
  }

  /** Steps take as long as those before them, on average. Null while none has ended. */
  leftMs(now: number): number | null {
    const ended = this.#begun - 1;
    if (ended < 1) return null;
    const each = (this.#stepBeganAt - this.#beganAt) / ended;
    return Math.max(0, each * (this.#total - ended) - (now - this.#stepBeganAt));
  }

  text(now: number): string {
    const left = this.leftMs(now);
    const at = this.#begun === 0 ? "" : `: step ${Math.min(this.#begun, this.#total)} of ${this.#total}`;
    const wait = left === null || left < 1000 ? "" : `, about ${formatDuration(inSeconds(left))} left`;
    const what = this.#current === "" ? "" : `: ${this.#current}`;
    return `building the image${at}, ${formatDuration(inSeconds(now - this.#beganAt))}${wait}${what}`;
  }
}

function inSeconds(ms: number): number {
  return Math.round(ms / 1000) * 1000;
}

/** Shows a build or a pull on stderr once it has taken longer than two seconds. */
export class BuildProgress implements Disposable {
  readonly #progress: Progress;
  readonly #isTerminal: boolean;
  readonly #startedAt = performance.now();
  #steps: BuildSteps | null = null;
  #pull: string | null = null;
  readonly #timer: NodeJS.Timeout;
  #hasSpoken = false;

  constructor(target: ProgressTarget, options: { usesColour: boolean }) {
    this.#progress = createProgress(target, options);
    this.#isTerminal = target.isTTY === true;
    this.#timer = setInterval(() => {
      // Where each step is a line, it is said once, as it begins.
      if (this.#isTerminal || !this.#hasSpoken) this.#show();
    }, REDRAW_MS);
  }

  readonly tell = ({ stage, image, line, steps }: ImageProgress): void => {
    const now = performance.now();
    if (steps !== undefined) this.#steps = new BuildSteps(steps, now);
    if (stage === "wait") this.#pull = "another process is building the image";
    else this.#pull = stage === "pull" ? `pulling ${image}${line === undefined ? "" : `: ${line}`}` : null;
    if (stage === "build" && line !== undefined && this.#steps?.take(line, now)) this.#show();
    else if (stage === "pull" && this.#isTerminal) this.#show();
  };

  #show(): void {
    const now = performance.now();
    if (now - this.#startedAt < QUIET_MS) return;
    const text = this.#pull ?? this.#steps?.text(now);
    if (text === undefined) return;
    this.#hasSpoken = true;
    this.#progress.step(text);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#progress.close();
  }
}
