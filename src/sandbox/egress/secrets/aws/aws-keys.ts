import { randomBytes, randomInt } from "node:crypto";
import type { AwsKeysRule } from "../../../policy/egress-schema.js";

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

  /** The newest keys, with the time when they expire. */
  get timed(): TimedCredentials {
    return this.#current;
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

/** Keys of AWS with their placeholders. Only this process knows both. */
export interface HeldAwsSecret {
  /** Name of the secret in the settings. */
  name: string;
  /** What the settings say of it, also where it is read from. */
  rule: AwsKeysRule;
  /** Environment variables in which programs find the placeholders. */
  variables: Readonly<Record<string, string>>;
  keys: AwsKeys;
  /** Placeholders, with a session token if the first keys have one. They stay the same when the keys are read anew. */
  placeholders: AwsCredentials;
  /** Patterns as in an allow-list. */
  hosts: readonly string[];
  /** Null: any. */
  regions: readonly string[] | null;
  services: readonly string[] | null;
  /** Whether requests without TLS are signed. */
  plainHttp: boolean;
}

/** Alphabet of access key ids after their prefix: Base32. */
const ID_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const ID_CHARS = 16;
const SECRET_BYTES = 30;
const TOKEN_BYTES = 96;

/** Random, in the form of real ones, which programs check: temporary keys begin with ASIA and have a session token. */
export function newAwsPlaceholders({ sessionToken }: AwsCredentials): AwsCredentials {
  return {
    accessKeyId: newAccessKeyId(sessionToken === null ? "AKIA" : "ASIA"),
    secretAccessKey: newSecretAccessKey(),
    sessionToken: sessionToken === null ? null : randomBytes(TOKEN_BYTES).toString("base64url"),
  };
}

export function newAccessKeyId(prefix: "AKIA" | "ASIA"): string {
  const characters = Array.from({ length: ID_CHARS }, () => ID_ALPHABET[randomInt(ID_ALPHABET.length)]);
  return prefix + characters.join("");
}

/** 40 characters that no encoding of a URL changes, so that they are recognised wherever they are sent. */
function newSecretAccessKey(): string {
  return randomBytes(SECRET_BYTES).toString("base64url");
}

/** Environment variables in which AWS programs look for keys, if the name is AWS. */
export function awsVariables(
  name: string,
  { accessKeyId, secretAccessKey, sessionToken }: AwsCredentials,
): Record<string, string> {
  return {
    [`${name}_ACCESS_KEY_ID`]: accessKeyId,
    [`${name}_SECRET_ACCESS_KEY`]: secretAccessKey,
    ...(sessionToken !== null && { [`${name}_SESSION_TOKEN`]: sessionToken }),
  };
}
