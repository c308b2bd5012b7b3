import { isBrigError } from "../../errors.js";
import type { SandboxSettings } from "../../sandbox/index.js";
import type { ChatGptLogin } from "./agents/codex-login.js";
import { CHATGPT_TOKEN } from "./agents/prepare-agent.js";

type Inspection = NonNullable<SandboxSettings["inspection"]>;

/** A token is renewed a minute before it expires at the latest. */
const LOOK_MS = 20_000;

/** Puts the newest token of a login into the requests of a sandbox, until this is disposed of. */
export class LoginInForce implements Disposable {
  readonly #login: ChatGptLogin;
  readonly #inspection: Inspection;
  readonly #over = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #failure: string | null = null;

  constructor(login: ChatGptLogin, inspection: Inspection, { lookMs = LOOK_MS }: { lookMs?: number } = {}) {
    this.#login = login;
    this.#inspection = inspection;
    this.#timer = setInterval(() => void this.#look(), lookMs).unref();
  }

  /** Why the token could not be renewed the last time; null if it could. */
  get failure(): string | null {
    return this.#failure;
  }

  async #look(): Promise<void> {
    try {
      const { accessToken } = await this.#login.current(this.#over.signal);
      this.#failure = null;
      const secret = this.#inspection.secrets.find(({ name }) => name === CHATGPT_TOKEN);
      if (secret === undefined || secret.value === accessToken) return;
      // Hidden before anybody can send it back.
      this.#inspection.mask?.add([accessToken]);
      secret.value = accessToken;
    } catch (error) {
      if (this.#over.signal.aborted) return;
      this.#failure = isBrigError(error) ? error.message : String(error);
    }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#over.abort();
  }
}
