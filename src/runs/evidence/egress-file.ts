import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { EgressAttempt } from "../../egress/attempt.js";
import type { EgressEntry } from "../../egress/log/egress-entry.js";
import { EgressLog } from "../../egress/log/egress-log.js";
import type { AttemptStage } from "../attempt/attempt.js";

/** In the folder of an attempt: what programs in its containers tried to reach. There is none without such attempts. */
const EGRESS_FILE = "egress.jsonl";

/** Writes each entry at once. A disk that is full costs the rest of the file, and not the attempt. */
export class EgressFile {
  readonly #path: string;
  readonly #log = new EgressLog((entry) => this.#write(entry));
  readonly #stage: () => AttemptStage;
  #hasFailed = false;

  /** `stage` says where the attempt is. Call `flush` before it changes. */
  constructor({ folder, stage }: { folder: string; stage: () => AttemptStage }) {
    this.#path = join(folder, EGRESS_FILE);
    this.#stage = stage;
  }

  readonly add = (attempt: EgressAttempt): void => this.#log.add(attempt);

  flush(): void {
    this.#log.flush();
  }

  #write({ startedAtMs, ...entry }: EgressEntry): void {
    if (this.#hasFailed) return;
    const line = { stage: this.#stage(), startedAt: new Date(startedAtMs).toISOString(), ...entry };
    try {
      appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
    } catch {
      this.#hasFailed = true;
    }
  }
}
