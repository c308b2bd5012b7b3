import { createHash, timingSafeEqual } from "node:crypto";
import { newToken } from "../../lib/http/bearer-token.js";
import type { SandboxSet } from "../serve/sandboxes/sandbox-set.js";
import type { ServedSandbox } from "../serve/sandboxes/served-sandbox.js";
import type { AskedNetwork } from "./network-rules.js";

/** What a client of E2B has asked for with a sandbox. */
export interface AskedSandbox {
  /** As the client has written it. */
  templateId: string;
  network: AskedNetwork;
  /** Whether a request for it resumes it where it is paused. */
  resumesItself: boolean;
}

/** What is known of a sandbox of a client of E2B, also by the next service. */
interface KnownSandbox extends AskedSandbox {
  /** Opens the daemon and the ports of the sandbox. */
  accessToken: string;
  /** Is needed for its ports where they are not for everybody who knows their address. */
  trafficToken: string | null;
}

export interface E2bSandbox extends KnownSandbox {
  served: ServedSandbox;
}

/** Where commands start, and what forks and snapshots carry. */
export const HOME = "/home/user";
/** Who commands run as, for clients: it is the user of the sandbox's mode. */
export const USER = "user";

/** Which of the sandboxes of a service were created for clients of E2B, and how. */
export class E2bSandboxes {
  readonly #sandboxes: SandboxSet;
  /** What is known of a sandbox goes with it. */
  readonly #known = new WeakMap<ServedSandbox, E2bSandbox>();

  constructor(sandboxes: SandboxSet) {
    this.#sandboxes = sandboxes;
  }

  /** Error: `store.failed`, where the next service is to know it. */
  add(served: ServedSandbox, asked: AskedSandbox): E2bSandbox {
    const trafficToken = asked.network.allowPublicTraffic === false ? newToken() : null;
    const sandbox = { ...asked, served, accessToken: newToken(), trafficToken };
    this.#known.set(served, sandbox);
    this.note(sandbox);
    return sandbox;
  }

  /** Has the next service know it as it is now. Error: `store.failed`. */
  note({ served, ...known }: E2bSandbox): void {
    served.keepProtocolState({ e2b: known });
  }

  #knownOf(served: ServedSandbox): E2bSandbox | null {
    const known = this.#known.get(served);
    if (known !== undefined || served.protocolState === null) return known ?? null;
    const { e2b } = served.protocolState as { e2b: KnownSandbox };
    const sandbox = { ...e2b, served };
    this.#known.set(served, sandbox);
    return sandbox;
  }

  /** Whoever's it is. Null for a sandbox that is not there any more. */
  withId(id: string): E2bSandbox | null {
    const served = this.#sandboxes.withId(id);
    return served === null || served.hasEnded ? null : this.#knownOf(served);
  }

  /** Null for one that is not there any more, and for another client's. */
  find(client: string, id: string): E2bSandbox | null {
    const found = this.withId(id);
    return found?.served.client === client ? found : null;
  }

  of(client: string): E2bSandbox[] {
    return this.all().filter(({ served }) => served.client === client);
  }

  /** Those of all clients that are there. */
  all(): E2bSandbox[] {
    return this.#sandboxes
      .all()
      .map((served) => (served.hasEnded ? null : this.#knownOf(served)))
      .filter((one) => one !== null);
  }
}

/** Takes as long for a wrong token as for the right one. */
export function isToken(given: string | undefined, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return given !== undefined && timingSafeEqual(digest(given), digest(expected));
}
