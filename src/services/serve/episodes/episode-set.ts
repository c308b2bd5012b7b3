import type { AttemptAgent } from "../../../batch/index.js";
import { BrigError } from "../../../errors.js";
import type { Capacity } from "../sandboxes/capacity.js";
import { newId } from "../sandboxes/sandbox-set.js";
import type { Episode, EpisodeOptions } from "../wire/episode-schemas.js";
import { type AttemptPlace, newAttempt } from "./attempts.js";
import { RunningEpisode } from "./episode.js";
import { episodeTask } from "./episode-task.js";

export interface EpisodeSetOptions {
  place: AttemptPlace;
  capacity: Capacity;
  /** The image of episodes without a task. */
  image: string;
  /** Error: `usage.invalid` if the request names no agent and the service was started without one. */
  openAgent: (agent: EpisodeOptions["agent"]) => AttemptAgent;
  onWarning: (error: unknown) => void;
}

/** How many episodes of a client are kept after their ends. Older ones are forgotten, with what they have left. */
const MAX_KEPT = 1000;

/** All episodes of all clients. */
export class EpisodeSet {
  readonly #options: EpisodeSetOptions;
  readonly #episodes = new Map<string, RunningEpisode>();

  constructor(options: EpisodeSetOptions) {
    this.#options = options;
  }

  /** Begins an episode. Errors: a refusal with 429; `serve.unknown`, `usage.invalid`; the signal's reason. */
  async create(client: string, request: EpisodeOptions, signal: AbortSignal): Promise<Episode> {
    const { place, capacity, image, openAgent, onWarning } = this.#options;
    const task = episodeTask(request, { tasks: place.tasks, image });
    const agent = openAgent(request.agent);
    const seat = await capacity.take(client, { waitMs: request.waitMs ?? 0, signal });
    try {
      signal.throwIfAborted();
      const { timeoutMs, maxTurns, maxTokens } = request;
      const ending = new AbortController();
      const attempt = await newAttempt(place, {
        task,
        agent,
        limits: {
          agentTimeoutSec: timeoutMs === undefined ? undefined : timeoutMs / 1000,
          maxTurns,
          maxTokens,
        },
        signal: ending.signal,
      });
      const episode = new RunningEpisode({ id: newId(), client, attempt, ending, seat, onWarning });
      // At once, because it is running: a failure to forget another one must not make it unknown.
      this.#episodes.set(episode.id, episode);
      await this.#forgetOldest(client).catch(onWarning);
      return episode.record;
    } catch (error) {
      seat[Symbol.dispose]();
      throw error;
    }
  }

  /** Error: `serve.unknown`, also for the episode of another client. */
  get(client: string, id: string): RunningEpisode {
    const episode = this.#episodes.get(id);
    if (episode !== undefined && episode.client === client) return episode;
    throw new BrigError("there is no such episode", {
      code: "serve.unknown",
      hint: `it may have been deleted; only the ${MAX_KEPT} latest that have ended are kept`,
    });
  }

  of(client: string): Episode[] {
    return this.#allOf(client).map(({ record }) => record);
  }

  async remove(client: string, id: string): Promise<void> {
    await this.#remove(this.get(client, id));
  }

  /** Resolves when all have ended. */
  async settled(): Promise<void> {
    await Promise.all([...this.#episodes.values()].map((episode) => episode.ended));
  }

  /** Ends and removes all of them. What cannot be removed is only warned of. */
  async close(): Promise<void> {
    const { onWarning } = this.#options;
    await Promise.all([...this.#episodes.values()].map((episode) => this.#remove(episode).catch(onWarning)));
  }

  #allOf(client: string): RunningEpisode[] {
    return [...this.#episodes.values()].filter((episode) => episode.client === client);
  }

  async #forgetOldest(client: string): Promise<void> {
    const over = this.#allOf(client).filter((episode) => episode.hasEnded);
    for (const episode of over.slice(0, Math.max(0, over.length - MAX_KEPT + 1))) await this.#remove(episode);
  }

  async #remove(episode: RunningEpisode): Promise<void> {
    this.#episodes.delete(episode.id);
    await episode.remove();
  }
}
