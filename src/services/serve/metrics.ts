import { isBrigError } from "../../errors.js";
import type { Answer, Call, Calls } from "./http/response.js";
import type { RouteName } from "./wire/routes.js";

/** The upper bounds of the histogram, in seconds: from a command that does nothing to one that trains for an hour. */
const BOUNDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600];

/** What has happened since the service began, for Prometheus. */
export class Metrics {
  readonly #failures = new Map<string, number>();
  readonly #execs = BOUNDS.map(() => 0);
  #execCount = 0;
  #execSeconds = 0;

  /** Codes are a fixed list, so that there are only so many of them. */
  countFailure(error: unknown): void {
    const code = isBrigError(error) ? error.code : "serve.failed";
    this.#failures.set(code, (this.#failures.get(code) ?? 0) + 1);
  }

  countExec(seconds: number): void {
    this.#execCount++;
    this.#execSeconds += seconds;
    const at = BOUNDS.findIndex((bound) => seconds <= bound);
    if (at >= 0) this.#execs[at] = (this.#execs[at] ?? 0) + 1;
  }

  /** Counts a command that has run to its end, with its time. */
  async timed<T>(running: Promise<T>): Promise<T> {
    const begun = performance.now();
    const result = await running;
    this.countExec((performance.now() - begun) / 1000);
    return result;
  }

  /** Counts its failure, unless that is the end of the client. */
  async watched<T>(doing: Promise<T>, signal: AbortSignal): Promise<T> {
    try {
      return await doing;
    } catch (error) {
      if (!signal.aborted) this.countFailure(error);
      throw error;
    }
  }

  /** The same calls, whose failures are counted. */
  counted(calls: Calls): Calls {
    const counted = Object.entries(calls).map(([name, answer]) => [
      name,
      async (call: Call<RouteName>): Promise<Answer> =>
        // Each is called with the call of its own name.
        await this.watched((answer as (call: Call<RouteName>) => Promise<Answer>)(call), call.signal),
    ]);
    return Object.fromEntries(counted) as Calls;
  }

  /** Everything in the text format of Prometheus. */
  text({
    added,
    open,
    waiting,
    warm,
    auditLost,
  }: {
    added: number;
    open: number;
    waiting: number;
    warm: number;
    auditLost: number;
  }): string {
    const failures = [...this.#failures].toSorted(([one], [other]) => (one < other ? -1 : 1));
    let below = 0;
    const buckets = BOUNDS.map((bound, index) => {
      below += this.#execs[index] ?? 0;
      return `brig_exec_duration_seconds_bucket{le="${bound}"} ${below}`;
    });
    const lines = [
      "# HELP brig_sandboxes_created_total Sandboxes that clients have created.",
      "# TYPE brig_sandboxes_created_total counter",
      `brig_sandboxes_created_total ${added}`,
      "# HELP brig_sandboxes Sandboxes of clients that are there.",
      "# TYPE brig_sandboxes gauge",
      `brig_sandboxes ${open}`,
      "# HELP brig_waiting Requests that wait for a place.",
      "# TYPE brig_waiting gauge",
      `brig_waiting ${waiting}`,
      "# HELP brig_warm_sandboxes Sandboxes that are ready to be handed over at once.",
      "# TYPE brig_warm_sandboxes gauge",
      `brig_warm_sandboxes ${warm}`,
      "# HELP brig_audit_lost_total Lines that could not be written to the audit log.",
      "# TYPE brig_audit_lost_total counter",
      `brig_audit_lost_total ${auditLost}`,
      "# HELP brig_failures_total Requests that failed, by the code of the error.",
      "# TYPE brig_failures_total counter",
      ...failures.map(([code, count]) => `brig_failures_total{code="${code}"} ${count}`),
      "# HELP brig_exec_duration_seconds How long commands took.",
      "# TYPE brig_exec_duration_seconds histogram",
      ...buckets,
      `brig_exec_duration_seconds_bucket{le="+Inf"} ${this.#execCount}`,
      `brig_exec_duration_seconds_sum ${this.#execSeconds}`,
      `brig_exec_duration_seconds_count ${this.#execCount}`,
    ];
    return `${lines.join("\n")}\n`;
  }
}
