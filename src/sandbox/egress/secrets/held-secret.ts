import { randomInt } from "node:crypto";

/** A secret with its placeholder. Only this process knows both. */
export interface HeldSecret {
  /** The variable in which programs find the placeholder. */
  name: string;
  value: string;
  placeholder: string;
  /** Patterns as in an allow-list. */
  hosts: readonly string[];
  /** Names in lower case. */
  headers: readonly string[];
  /** Parameters of URLs. */
  query: readonly string[];
  /** Whether it may be sent without TLS. */
  plainHttp: boolean;
}

/** Headers in which keys are usually sent, for secrets that name none. */
export const USUAL_HEADERS = [
  ...["authorization", "x-api-key", "api-key", "x-goog-api-key", "private-token", "x-auth-token"],
] as const;

/** Beginnings of keys of well-known services, which programs check. Longer ones come first. */
const KNOWN_PREFIX =
  /^(?:sk-ant-[a-z0-9]+-|sk-proj-|sk-or-v1-|sk-|github_pat_|gh[opsur]_|glpat-|xox[abprs]-|npm_|pypi-|hf_|AIza|AKIA|ASIA)/;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const RANDOM_CHARS = 40;

/** Random, but it begins like the secret if that begins like a key of a well-known service. */
export function newPlaceholder(value: string): string {
  const [prefix = ""] = KNOWN_PREFIX.exec(value) ?? [];
  const characters = Array.from({ length: RANDOM_CHARS }, () => ALPHABET[randomInt(ALPHABET.length)]);
  return prefix + characters.join("");
}
