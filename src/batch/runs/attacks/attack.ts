/** One known way to get a reward without solving the task. */
export interface Attack {
  /** Used in `--agent cheat:NAME`. */
  readonly name: string;
  /** One sentence. */
  readonly tries: string;
  /** The place where the attack was seen. */
  readonly source: string;
  /** How the author of a task can prevent it. */
  readonly remedy: string;
  /**
   * POSIX shell, run by the agent in its container. It ends with 0 once the attack is in place, with
   * `NOT_POSSIBLE` where the container lacks what it needs. The functions of `plant-attack.ts` come before it.
   */
  readonly script: string;
  /** Paths or other names that it replaces. Attacks that share one of these need a container each. */
  readonly claims: readonly string[];
}

export const NOT_POSSIBLE = 77;
