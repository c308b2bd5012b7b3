import type { EgressEntry } from "../../egress/log/egress-entry.js";
import { EgressLog, mergedEntries } from "../../egress/log/egress-log.js";
import type { Sandbox } from "../../sandbox/sandbox.js";
import { entryAsJson } from "./egress-text.js";

/** What programs of a sandbox tried to reach, from now on. */
export class EgressCollection {
  readonly #entries: EgressEntry[] = [];
  readonly #log = new EgressLog((entry) => this.#entries.push(entry));

  constructor(sandbox: Sandbox) {
    sandbox.watchEgress((attempt) => this.#log.add(attempt));
  }

  /** Equal attempts are one entry. */
  entries(): EgressEntry[] {
    this.#log.flush();
    return mergedEntries(this.#entries);
  }

  asJson(): object[] {
    return this.entries().map(entryAsJson);
  }
}
