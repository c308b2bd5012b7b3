import { randomBytes, randomInt } from "node:crypto";
import { newAccessKeyId } from "../secrets/aws/aws-keys.js";

/** Kind of secret that a canary looks like. */
export type CanaryForm = "aws-access-key" | "github-token" | "token";

/** A secret that is not real, and that nobody has a reason to send anywhere. */
export interface Canary {
  name: string;
  /** Texts that are looked for. An access key has two parts. */
  values: readonly string[];
  /** Environment variables in which programs find the canary. */
  variables: Readonly<Record<string, string>>;
  /** Inside, written before the first command; null for none. */
  file: { path: string; text: string } | null;
}

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const GITHUB_CHARS = 36;
const TOKEN_CHARS = 40;
const AWS_SECRET_BYTES = 30;

/** Random, so that it can only come from this sandbox. `variable` and `file` are where it is planted. */
export function newCanary(
  name: string,
  { form, variable, file }: { form: CanaryForm; variable: string | null; file: string | null },
): Canary {
  const planted = (values: readonly string[], variables: Record<string, string>, text: string): Canary => ({
    ...{ name, values, variables },
    file: file === null ? null : { path: file, text },
  });
  if (form === "aws-access-key") {
    const id = newAccessKeyId("AKIA");
    const key = randomBytes(AWS_SECRET_BYTES).toString("base64");
    const variables = variable === null ? {} : awsVariables(variable, id, key);
    return planted(
      [id, key],
      variables,
      `[default]\naws_access_key_id = ${id}\naws_secret_access_key = ${key}\n`,
    );
  }
  const value = form === "github-token" ? `ghp_${characters(GITHUB_CHARS)}` : characters(TOKEN_CHARS);
  return planted([value], variable === null ? {} : { [variable]: value }, `${value}\n`);
}

function awsVariables(prefix: string, id: string, key: string): Record<string, string> {
  return { [`${prefix}_ACCESS_KEY_ID`]: id, [`${prefix}_SECRET_ACCESS_KEY`]: key };
}

function characters(count: number): string {
  return Array.from({ length: count }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}
