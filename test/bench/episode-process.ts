import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { EpisodeSide, EpisodeTimes } from "./episodes-process.js";

/** A process that does nothing but run episodes on one side. */
export class EpisodeProcess implements AsyncDisposable {
  readonly #child: ReturnType<typeof fork>;

  static async start(side: EpisodeSide, signal: AbortSignal): Promise<EpisodeProcess> {
    const program = fileURLToPath(new URL("./episodes-process.js", import.meta.url));
    const child = fork(program, { signal, stdio: ["ignore", "inherit", "inherit", "ipc"] });
    // An interruption is an error of the child too, also while nobody waits for it.
    child.on("error", () => undefined);
    child.send(side);
    await replyOf(child);
    return new EpisodeProcess(child);
  }

  private constructor(child: ReturnType<typeof fork>) {
    this.#child = child;
  }

  /** Runs so many, and resolves to their times when the side is at rest again. */
  async run(episodes: number): Promise<EpisodeTimes> {
    this.#child.send(episodes);
    return (await replyOf(this.#child)) as EpisodeTimes;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    if (this.#child.connected) this.#child.disconnect();
    await exited;
  }
}

async function replyOf(child: ReturnType<typeof fork>): Promise<unknown> {
  const over = new AbortController();
  try {
    const early = once(child, "exit", { signal: over.signal }).then(([code]) => {
      throw new Error(`the process of the episodes ended with ${code}`);
    });
    const [reply] = await Promise.race([once(child, "message", { signal: over.signal }), early]);
    return reply;
  } finally {
    over.abort();
  }
}
