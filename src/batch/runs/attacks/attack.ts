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

/** Attacks with what they have in common. What one of them says itself counts. */
export function attacksWith<Common extends Partial<Attack>>(
  common: Common,
  attacks: readonly (Omit<Attack, keyof Common> & Partial<Attack>)[],
): Attack[] {
  return attacks.map((attack) => ({ ...common, ...attack }) as Attack);
}

export const NOT_POSSIBLE = 77;
