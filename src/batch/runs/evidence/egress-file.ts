import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { EgressAttempt, EgressEntry } from "../../../sandbox/index.js";
import { EgressLog } from "../../../sandbox/index.js";
import type { AttemptStage } from "../attempt/attempt.js";

/** File in the folder of an attempt that lists what programs in its containers tried to reach. Missing if there was no such attempt. */
const EGRESS_FILE = "egress.jsonl";

/**
 * Writes each entry at once, with the stage in which the connection began: it may be cut in a later one. A disk that is
 * full costs the rest of the file, and not the attempt.
 */
export class EgressFile {
  readonly #path: string;
  readonly #logs = new Map<AttemptStage, EgressLog>();
  readonly #entered: { stage: AttemptStage; fromMs: number }[] = [];
  #hasFailed = false;

  constructor(folder: string) {
    this.#path = join(folder, EGRESS_FILE);
  }

  enter(stage: AttemptStage): void {
    this.flush();
    this.#entered.push({ stage, fromMs: Date.now() });
  }

  readonly add = (attempt: EgressAttempt): void => {
    const began = this.#entered.findLast(({ fromMs }) => fromMs <= attempt.startedAtMs) ?? this.#entered[0];
    const stage = began?.stage ?? "start";
    const log = this.#logs.get(stage) ?? new EgressLog((entry) => this.#write(stage, entry));
    this.#logs.set(stage, log);
    log.add(attempt);
  };

  flush(): void {
    for (const log of this.#logs.values()) log.flush();
  }

  #write(stage: AttemptStage, { startedAtMs, phase: _, ...entry }: EgressEntry): void {
    if (this.#hasFailed) return;
    const line = { stage, startedAt: new Date(startedAtMs).toISOString(), ...entry };
    try {
      appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    } catch {
      this.#hasFailed = true;
    }
  }
}
