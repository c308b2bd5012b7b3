export interface AwsCredentials {
  accessKeyId: string;
  secretAccessKey: string;
  /** Token of temporary keys. Null for all others. */
  sessionToken: string | null;
}

export interface TimedCredentials {
  credentials: AwsCredentials;
  /** Null for keys that stay valid, as far as is known. */
  expiresAtMs: number | null;
}

interface RenewOptions {
  /** Reads the keys once more from where they are. */
  read(): Promise<TimedCredentials>;
  /** Called with keys that were read anew, before anything is signed with them. */
  onRenewed?: ((credentials: AwsCredentials) => void) | undefined;
}

/** New keys are read so long before the old ones expire, or when half of their time is over if they have less. */
const EARLY_MS = 5 * 60_000;
/** Programs decide how often requests are made, and each try runs a program of the user. */
const PAUSE_AFTER_FAILURE_MS = 5000;
/** Services may answer with keys of before: so many of them stay hidden in answers. */
const GENERATIONS_KEPT = 8;

/** Keys of AWS that are read anew before they expire. */
export class AwsKeys {
  #current: TimedCredentials;
  #hidden: string[][];
  #dueAtMs: number;
  #reading: Promise<void> | null = null;
  readonly #renew: RenewOptions | null;

  /** Keys are used for ever if there is no `renew`. */
  constructor(first: TimedCredentials, renew: RenewOptions | null = null) {
    this.#current = first;
    this.#hidden = [secretParts(first.credentials)];
    this.#dueAtMs = dueAt(first);
    this.#renew = renew;
  }

  /** The newest keys. They may have expired. */
  get newest(): AwsCredentials {
    return this.#current.credentials;
  }

  /** The secret parts of these keys and of those before, which nobody may see in an answer. */
  get hidden(): readonly string[] {
    return this.#hidden.flat();
  }

  /** The keys that are valid now. Null if they have expired and no others can be read. */
  async valid(): Promise<AwsCredentials | null> {
    if (this.#renew !== null && Date.now() >= this.#dueAtMs)
      this.#reading ??= this.#readAnew(this.#renew).finally(() => {
        this.#reading = null;
      });
    // Only requests that have no other keys wait, and all of them for the same program.
    if (this.#hasExpired) await this.#reading;
    return this.#hasExpired ? null : this.newest;
  }

  get #hasExpired(): boolean {
    const { expiresAtMs } = this.#current;
    return this.#renew !== null && expiresAtMs !== null && Date.now() >= expiresAtMs;
  }

  async #readAnew({ read, onRenewed }: RenewOptions): Promise<void> {
    const found = await read().catch(() => null);
    if (found === null || (found.expiresAtMs !== null && found.expiresAtMs <= Date.now())) {
      this.#dueAtMs = Date.now() + PAUSE_AFTER_FAILURE_MS;
      return;
    }
    this.#hidden = [...this.#hidden, secretParts(found.credentials)].slice(-GENERATIONS_KEPT);
    onRenewed?.(found.credentials);
    this.#current = found;
    this.#dueAtMs = dueAt(found);
  }
}

/** The parts of keys that nobody may see. The id is no secret. */
export function secretParts({ secretAccessKey, sessionToken }: AwsCredentials): string[] {
  return [secretAccessKey, sessionToken].filter((part) => part !== null);
}

function dueAt({ expiresAtMs }: TimedCredentials): number {
  if (expiresAtMs === null) return Number.POSITIVE_INFINITY;
  const leftMs = Math.max(0, expiresAtMs - Date.now());
  return expiresAtMs - Math.min(EARLY_MS, leftMs / 2);
}
