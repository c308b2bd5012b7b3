import { randomBytes, randomInt } from "node:crypto";
import type { AwsCredentials, AwsKeys } from "./aws-keys.js";

/** Keys of AWS with their placeholders. Only this process knows both. */
export interface HeldAwsSecret {
  /** Name of the secret in the settings. */
  name: string;
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
