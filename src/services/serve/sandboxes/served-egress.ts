import type { EgressEntry, Sandbox } from "../../../sandbox/index.js";
import { EgressLog, mergedEntries, proposeHosts } from "../../../sandbox/index.js";
import type { RemoteEgress } from "../wire/account-schemas.js";

/** What programs of a sandbox try to reach, from its start on. Attempts beyond some thousand kinds are only counted. */
export class ServedEgress {
  readonly #entries: EgressEntry[] = [];
  readonly #log = new EgressLog((entry) => this.#entries.push(entry));
  readonly #learns: boolean;

  constructor(sandbox: Sandbox, { learns }: { learns: boolean }) {
    this.#learns = learns;
    sandbox.watchEgress((attempt) => this.#log.add(attempt));
  }

  get now(): RemoteEgress {
    this.#log.flush();
    const attempts = mergedEntries(this.#entries);
    return { attempts, proposal: this.#learns ? proposeHosts(attempts) : null };
  }
}
