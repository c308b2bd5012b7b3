import type { EgressEntry, Sandbox } from "../../sandbox/index.js";
import { EgressLog, mergedEntries, proposeHosts } from "../../sandbox/index.js";
import { entryAsJson } from "./egress-text.js";
import { LEARNING, proposalText } from "./learning.js";

/** Records the hosts that programs of `brig exec` try to reach, from its creation on. */
export class ExecEgress {
  static readonly warning = LEARNING;
  readonly #entries: EgressEntry[] = [];
  readonly #log = new EgressLog((entry) => this.#entries.push(entry));
  readonly #learns: boolean;

  constructor(sandbox: Sandbox, { learns }: { learns: boolean }) {
    this.#learns = learns;
    sandbox.watchEgress((attempt) => this.#log.add(attempt));
  }

  /** The properties for the object that `--json` prints. Equal attempts are one entry. */
  asJson(): object {
    const entries = this.#all();
    const proposed = this.#learns ? { proposed: proposeHosts(entries) } : {};
    return { egress: entries.map(entryAsJson), ...proposed };
  }

  /** Empty if nothing is learned. */
  proposalText(): string {
    return this.#learns ? proposalText(proposeHosts(this.#all())) : "";
  }

  #all(): EgressEntry[] {
    this.#log.flush();
    return mergedEntries(this.#entries);
  }
}
