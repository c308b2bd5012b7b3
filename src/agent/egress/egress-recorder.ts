import type { AskAboutHost, EgressAttempt, EgressEntry, EgressLog } from "../../sandbox/index.js";
import type { AgentSandbox } from "../agent-sandbox.js";
import { egressAttemptRecord } from "../session/write/session-records.js";
import type { Transcript } from "../turn/transcript.js";

/** No call waits for a record that could report the error of a listener. */
function warn(error: unknown): void {
  process.emitWarning(error instanceof Error ? error : String(error));
}

/** Records and reports what programs in a session's sandboxes try to reach. */
export class EgressRecorder {
  readonly #transcript: Transcript;
  /** Loaded with the first allow-list. */
  #log: Promise<EgressLog> | null = null;
  /** Attempts made before the session began, by its MCP servers; null from then on. */
  #early: EgressEntry[] | null = [];

  #canarySent: Promise<Error> | null = null;
  readonly #watched = new WeakSet<AgentSandbox>();

  constructor(transcript: Transcript) {
    this.#transcript = transcript;
  }

  /**
   * Records what programs of the sandbox try to reach, and lets them ask with `ask`. A set-up is recorded before there is
   * anybody to ask, so a second call for the same sandbox only adds `ask`.
   */
  watch(sandbox: AgentSandbox, { ask }: { ask?: AskAboutHost | undefined } = {}): void {
    const isWatched = this.#watched.has(sandbox);
    this.#watched.add(sandbox);
    sandbox.watchEgress?.(isWatched ? () => undefined : this.#record, {
      ask,
      onCanarySent: (error) => {
        this.#canarySent ??= error;
      },
    });
  }

  readonly #record = (attempt: EgressAttempt): void => {
    this.#log ??= this.#open();
    this.#log.then((log) => log.add(attempt)).catch(warn);
  };

  /** Call this when there is a record to write to. */
  begin(): void {
    const early = this.#early ?? [];
    this.#early = null;
    for (const entry of early) this.#keep(entry);
  }

  /**
   * Error: `sandbox.canary-sent`, from the first attempt of a program to send a canary on. A call can have an answer before
   * that is known, or a program can make the attempt between calls.
   */
  async requireNoCanarySent(): Promise<void> {
    if (this.#canarySent !== null) throw await this.#canarySent;
  }

  /** Writes down what was only counted so far. */
  async flush(): Promise<void> {
    (await this.#log)?.flush();
  }

  async #open(): Promise<EgressLog> {
    const { EgressLog } = await import("../../sandbox/index.js");
    return new EgressLog((entry) => {
      if (this.#early === null) this.#keep(entry);
      else this.#early.push(entry);
    });
  }

  #keep(entry: EgressEntry): void {
    this.#transcript.keep(egressAttemptRecord(entry));
    this.#transcript.emit({ kind: "egress", entry });
  }
}
