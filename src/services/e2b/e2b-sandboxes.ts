import { createHash, timingSafeEqual } from "node:crypto";
import { newToken } from "../../lib/http/bearer-token.js";
import type { SandboxSet } from "../serve/sandboxes/sandbox-set.js";
import type { ServedSandbox } from "../serve/sandboxes/served-sandbox.js";

/** What a client of E2B has asked for and was given with a sandbox. */
export interface E2bSandbox {
  /** As the client has written it. */
  templateId: string;
  home: string;
  user: string;
  accessToken: string;
}

export type FoundSandbox = E2bSandbox & {
  served: ServedSandbox;
  /** Takes as long for a wrong token as for the right one. */
  hasAccessToken(given: string): boolean;
};

/** Which of the sandboxes of a service were created for clients of E2B, and how. */
export class E2bSandboxes {
  readonly #sandboxes: SandboxSet;
  /** What is known of a sandbox goes with it. */
  readonly #known = new WeakMap<ServedSandbox, E2bSandbox>();

  constructor(sandboxes: SandboxSet) {
    this.#sandboxes = sandboxes;
  }

  add(served: ServedSandbox, about: Omit<E2bSandbox, "accessToken">): FoundSandbox {
    this.#known.set(served, { ...about, accessToken: newToken() });
    return this.#found(served) as FoundSandbox;
  }

  /** Null for a sandbox that is not there any more. */
  withId(id: string): FoundSandbox | null {
    const served = this.#sandboxes.withId(id);
    return served === null || served.hasEnded ? null : this.#found(served);
  }

  of(client: string): FoundSandbox[] {
    return this.#sandboxes
      .ofClient(client)
      .map((served) => this.#found(served))
      .filter((one) => one !== null);
  }

  #found(served: ServedSandbox): FoundSandbox | null {
    const about = this.#known.get(served);
    if (about === undefined) return null;
    return { ...about, served, hasAccessToken: (given) => isSame(given, about.accessToken) };
  }
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
