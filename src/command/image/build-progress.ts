import { formatBytes } from "../../lib/bytes.js";
import { LongWork, type ProgressTarget } from "../../lib/terminal/progress.js";
import { formatDuration } from "../../lib/time/durations.js";
import { comma, Estimate } from "../../lib/time/estimate.js";
import type { ImageProgress, PulledBytes } from "../../sandbox/index.js";

/** The beginning of a step, as BuildKit and the classic builder say it. */
const STEP = /^(?:Step [0-9]+\/([0-9]+) : |\[(?:[^\]]* )?[0-9]+\/[0-9]+\] )(.*)$/s;

/** How far a build is. */
export class BuildSteps {
  readonly #estimate: Estimate;
  readonly #beganAt: number;
  #total: number | null;
  #begun = 0;
  #current = "";

  /** @param total The most steps that it may have: stages that nothing needs are left out. Null if the builder's own lines say it. */
  constructor(total: number | null, now: number) {
    this.#total = total;
    this.#beganAt = now;
    this.#estimate = new Estimate("steps", now);
  }

  take(line: string, now: number): void {
    const [, total, instruction] = STEP.exec(line) ?? [];
    if (instruction === undefined) {
      if (this.#begun === 0) this.#current = line;
      return;
    }
    this.#total ??= total === undefined ? null : Number(total);
    this.#begun += 1;
    this.#current = instruction;
    this.#estimate.update({ done: this.#begun - 1, total: this.#total }, now);
  }

  /** "step 2 of 4, 6.0 s, about 10 s left: RUN make" */
  text(now: number): string {
    const at = this.#total === null ? "" : ` of ${this.#total}`;
    const step = this.#begun === 0 ? "" : `step ${Math.min(this.#begun, this.#total ?? this.#begun)}${at}, `;
    const spent = formatDuration(Math.round((now - this.#beganAt) / 1000) * 1000);
    const what = this.#current === "" ? "" : `: ${this.#current}`;
    return `${step}${spent}${comma(this.#estimate.leftText(now))}${what}`;
  }
}

class PullWork {
  readonly #estimate: Estimate;
  #pulled: PulledBytes = { downloaded: 0, unpacked: 0, total: null };

  constructor(now: number) {
    this.#estimate = new Estimate("bytes", now);
  }

  take(pulled: PulledBytes, now: number): void {
    this.#pulled = pulled;
    const { downloaded, unpacked, total } = pulled;
    // What is downloaded is unpacked as well.
    this.#estimate.update({ done: downloaded + unpacked, total: total === null ? null : 2 * total }, now);
  }

  /** "120 MiB of 1.2 GiB, about 40 s left" */
  text(now: number): string {
    const { downloaded, unpacked, total } = this.#pulled;
    const isUnpacking = total !== null && downloaded >= total;
    const whole = total === null ? "" : ` of ${formatBytes(total)}`;
    const done = `${formatBytes(isUnpacking ? unpacked : downloaded)}${whole}`;
    return `${isUnpacking ? "unpacked " : ""}${done}${comma(this.#estimate.leftText(now))}`;
  }
}

/** An image that is being made ready. */
interface ImageWork {
  stage: ImageProgress["stage"];
  steps: BuildSteps | null;
  pull: PullWork | null;
  /** The latest line of a pull that says nothing of bytes. */
  line: string;
}

/** More at once would not fit into a line. */
const SHOWN = 2;

/** Shows builds and pulls on stderr while they take longer than two seconds. */
export class BuildProgress implements Disposable {
  readonly #images = new Map<string, ImageWork>();
  readonly #subject: (image: string) => string;
  readonly #work: LongWork;

  /** @param options.subject The words for an image that is built. Default: "the image". */
  constructor(
    target: ProgressTarget,
    { subject = () => "the image", usesColour }: { subject?: (image: string) => string; usesColour: boolean },
  ) {
    this.#subject = subject;
    this.#work = new LongWork(target, (now) => this.#text(now), { usesColour });
  }

  readonly tell = ({ stage, image, line = "", steps, pulled }: ImageProgress): void => {
    const now = performance.now();
    if (stage === "ready" || stage === "failed") return void this.#images.delete(image);
    const work = this.#images.get(image) ?? { stage, steps: null, pull: null, line };
    this.#images.set(image, work);
    Object.assign(work, { stage, line });
    if (stage === "build") {
      work.steps =
        steps === undefined && work.steps !== null ? work.steps : new BuildSteps(steps ?? null, now);
      work.steps.take(line, now);
    }
    if (pulled === undefined) return;
    work.pull ??= new PullWork(now);
    work.pull.take(pulled, now);
  };

  #text(now: number): string | null {
    const texts = [...this.#images].map(([image, work]) => this.#textOf(image, work, now));
    const shown = texts.filter((text) => text !== null).slice(0, SHOWN);
    return shown.length === 0 ? null : shown.join("; ");
  }

  #textOf(image: string, { stage, steps, pull, line }: ImageWork, now: number): string | null {
    if (stage === "wait") return `another process is building ${this.#subject(image)}`;
    if (stage === "pull") return `pulling ${image}${colon(pull === null ? line : pull.text(now))}`;
    return steps === null ? null : `building ${this.#subject(image)}: ${steps.text(now)}`;
  }

  [Symbol.dispose](): void {
    this.#work[Symbol.dispose]();
  }
}

function colon(text: string): string {
  return text === "" ? "" : `: ${text}`;
}
