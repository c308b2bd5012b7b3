import { formatBytes } from "../bytes.js";

/** Bytes are counted by what they took lately: a network becomes slower or faster. */
const MEMORY_MS = 10_000;
/** Samples that are closer together would only measure chance. */
const SAMPLE_MS = 250;
/** What was seen for a shorter time says too little. */
const LEAST_SEEN_MS = 2000;
/** The first step is often the quickest: of an image, it is the one that is there already. */
const LEAST_STEPS = 2;

/** How much of something is done, and how long the rest may take. All times are of one clock that only grows. */
export class Estimate {
  readonly #unit: "bytes" | "steps";
  readonly #beganAt: number;
  readonly #shown = new SteadyTime();
  #done = 0;
  #total: number | null = null;
  /** When the latest step ended. */
  #stepAt: number;
  /** What was done lately, and in which time: both fade at the same rate. */
  #recent = { done: 0, ms: 0 };
  #sample: { done: number; at: number };

  constructor(unit: "bytes" | "steps", now: number) {
    this.#unit = unit;
    this.#beganAt = now;
    this.#stepAt = now;
    this.#sample = { done: 0, at: now };
  }

  /** `total` is null while it is unknown. */
  update({ done, total }: { done: number; total: number | null }, now: number): void {
    if (done !== this.#done) this.#stepAt = now;
    this.#done = done;
    this.#total = total;
    this.#take(now);
  }

  /** Null while too little is known to say it honestly. */
  leftMs(now: number): number | null {
    if (this.#total === null) return null;
    const left = Math.max(0, this.#total - this.#done);
    if (this.#unit === "steps") {
      if (this.#done < LEAST_STEPS) return null;
      const each = (this.#stepAt - this.#beganAt) / this.#done;
      return Math.max(0, each * left - (now - this.#stepAt));
    }
    this.#take(now);
    const { done, ms } = this.#recent;
    return now - this.#beganAt < LEAST_SEEN_MS || done <= 0 ? null : (left * ms) / done;
  }

  /** "120 MiB of 1.2 GiB, about 40 s left", "3 of 12", "120 MiB". */
  text(now: number): string {
    const amount = (count: number) => (this.#unit === "bytes" ? formatBytes(count) : `${count}`);
    const whole = this.#total === null ? "" : ` of ${amount(this.#total)}`;
    return `${amount(this.#done)}${whole}${comma(this.leftText(now))}`;
  }

  /** "about 40 s left"; empty while that is unknown. */
  leftText(now: number): string {
    return this.#shown.text(this.leftMs(now), now);
  }

  #take(now: number): void {
    const passed = now - this.#sample.at;
    if (passed < SAMPLE_MS) return;
    const kept = Math.exp(-passed / MEMORY_MS);
    const { done, ms } = this.#recent;
    this.#recent = { done: done * kept + this.#done - this.#sample.done, ms: ms * kept + passed };
    this.#sample = { done: this.#done, at: now };
  }
}

export const comma = (text: string) => (text === "" ? "" : `, ${text}`);

/** A new estimate that differs by less from what is shown changes nothing of it. */
const TOLERANCE = 0.2;
const TOLERANCE_MS = 3000;

/** A time left that counts down by itself, and changes otherwise only when the estimate has become another one. */
export class SteadyTime {
  #endsAt: number | null = null;

  /** "about 4 min left"; empty for null and for less than a second. */
  text(leftMs: number | null, now: number): string {
    if (leftMs === null) {
      this.#endsAt = null;
      return "";
    }
    const off = Math.abs(now + leftMs - (this.#endsAt ?? Number.POSITIVE_INFINITY));
    if (off > Math.max(TOLERANCE_MS, TOLERANCE * leftMs)) this.#endsAt = now + leftMs;
    return leftText((this.#endsAt ?? now) - now);
  }
}

/** As exact as an estimate is: "about 40 s left", "about 4 min left", "about 2 h 10 min left". Empty for less than a second. */
export function leftText(ms: number): string {
  if (ms < 1000) return "";
  if (ms < 10_000) return "a few seconds left";
  if (ms < 55_000) return `about ${Math.round(ms / 10_000) * 10} s left`;
  const minutes = Math.max(1, Math.round(ms / 60_000));
  if (minutes < 60) return `about ${minutes} min left`;
  const tens = Math.round(minutes / 10) * 10;
  const [hours, rest] = [Math.floor(tens / 60), tens % 60];
  return `about ${hours} h${rest === 0 ? "" : ` ${rest} min`} left`;
}
