import type { EgressAttempt, Sandbox } from "../../../sandbox/index.js";
import { settingsOf } from "../../../sandbox/index.js";

/** How often programs have tried to reach a host, and what came of it. */
export interface HostCount {
  /** With its port, unless its name was only looked up. Null stands for all hosts beyond those that are kept apart. */
  host: string | null;
  allowed: number;
  refused: number;
  failed: number;
  latestAtMs: number;
}

const MAX_HOSTS = 200;
const MAX_HOST_CHARS = 300;

/** Which hosts the programs of a sandbox have reached, and which not, since it is open. */
export class EgressCounts {
  readonly #hosts = new Map<string | null, HostCount>();
  readonly totals = { allowed: 0, refused: 0, failed: 0 };

  add({ host, port, outcome, startedAtMs }: EgressAttempt): void {
    const count = this.#countOf(`${host.slice(0, MAX_HOST_CHARS)}${port === null ? "" : `:${port}`}`);
    const what = outcome.kind === "denied" ? "refused" : outcome.kind;
    count[what]++;
    this.totals[what]++;
    count.latestAtMs = Math.max(count.latestAtMs, startedAtMs);
  }

  /** The latest first. */
  list(): HostCount[] {
    return [...this.#hosts.values()].toSorted((one, other) => other.latestAtMs - one.latestAtMs);
  }

  #countOf(host: string): HostCount {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    const kept = this.#hosts.size < MAX_HOSTS ? Buffer.from(host).toString() : null;
    const count = this.#hosts.get(kept) ?? { host: kept, allowed: 0, refused: 0, failed: 0, latestAtMs: 0 };
    this.#hosts.set(kept, count);
    return count;
  }
}

/** Counts from now on what the programs of a sandbox reach. Undefined for one without a list of hosts, where brig does not see it. */
export function watchedEgress(sandbox: Sandbox): EgressCounts | undefined {
  if (settingsOf(sandbox).policy.policy.network.kind !== "allowlist") return undefined;
  const counts = new EgressCounts();
  sandbox.watchEgress((attempt) => counts.add(attempt));
  return counts;
}
