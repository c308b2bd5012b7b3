import { BrigError } from "../../errors.js";
import { AnySignal } from "../../lib/time/any-signal.js";
import type { AgentSandbox, SandboxSource } from "../agent-sandbox.js";
import type { SessionRecorder } from "../session-recorder.js";
import type { SessionSetup } from "./setup-options.js";

type Recorder = Pick<SessionRecorder, "settingUp" | "setupOutput" | "setUp" | "closed">;

/**
 * Sets up the first sandbox of a session. Later ones find what commands have left in the workspace, and are not set up
 * again: by then the set-up might start programs that an agent has written, with its network.
 */
export class SetupOnce {
  readonly #setup: SessionSetup | undefined;
  readonly #recorder: Recorder;
  readonly #closed = new AbortController();
  /** Ends the set-up that runs. */
  #running: AbortController | null = null;
  /** Signal of the last turn, whose calls wait for the set-up. */
  #turn: AbortSignal | null = null;
  #isDone = false;

  constructor(setup: SessionSetup | undefined, recorder: Recorder) {
    this.#setup = setup;
    this.#recorder = recorder;
  }

  /** The sandbox that the source opens is ready once it is set up. One that cannot be set up is closed. */
  before(source: SandboxSource): SandboxSource {
    const setup = this.#setup;
    if (setup === undefined || this.#isDone || typeof source !== "function") return source;
    return async () => {
      const sandbox = await source();
      // Another one may have been set up since.
      if (this.#isDone) return sandbox;
      try {
        await this.#run(sandbox, setup);
      } catch (error) {
        this.#recorder.closed(await Promise.allSettled([sandbox.close()]));
        throw error;
      }
      this.#isDone = true;
      return sandbox;
    };
  }

  /** Ends a set-up that runs when the signal is aborted, such as that of a turn. The next turn tries it again. */
  stopWith(signal: AbortSignal): void {
    if (this.#setup === undefined || this.#isDone) return;
    this.#turn = signal;
    const stop = () => this.#running?.abort(stopped());
    if (signal.aborted) stop();
    signal.addEventListener("abort", stop, { once: true });
  }

  /** Call this when the session is closed. Nothing is set up any more. */
  stop(): void {
    this.#closed.abort(stopped());
  }

  async #run(sandbox: AgentSandbox, setup: SessionSetup): Promise<void> {
    this.#closed.signal.throwIfAborted();
    // The turn may have been interrupted while the sandbox was starting.
    if (this.#turn?.aborted === true) throw stopped();
    this.#recorder.settingUp(sandbox, setup);
    this.#running = new AbortController();
    using either = new AnySignal([this.#running.signal, this.#closed.signal]);
    const options = {
      signal: either.signal,
      onOutput: (chunk: Uint8Array) => this.#recorder.setupOutput(chunk),
    };
    const ended = await setup.run(sandbox, options).catch((error: unknown) => {
      this.#recorder.setUp(sandbox, setup, null);
      throw error;
    });
    this.#recorder.setUp(sandbox, setup, ended);
    if (ended.error !== null) throw ended.error;
  }
}

function stopped(): BrigError {
  return new BrigError("the set-up was stopped", { code: "aborted" });
}
