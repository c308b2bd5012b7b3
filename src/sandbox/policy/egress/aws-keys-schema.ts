import { z } from "zod";
import { hostEntry } from "./host-entry.js";

const source = {
  env: z.string().min(1).optional().describe("The variable of this machine that has it"),
  file: z
    .string()
    .min(1)
    .optional()
    .describe("The file of this machine that has it, without its last line end"),
  command: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("The program of this machine, with its arguments, that prints it"),
};

const configuredSource = z
  .strictObject(source)
  .refine(isOne, { error: "needs exactly one of env, file and command" });

const callersSource = z
  .strictObject({ ...source, value: z.string().min(1).optional() })
  .refine(isOne, { error: "needs exactly one of env, file, command and value" });

function isOne(written: object): boolean {
  return Object.values(written).filter((value) => value !== undefined).length === 1;
}

/** Part of a credential scope, for example `eu-central-1` or `s3`. */
const scopePart = z.string().refine((text) => /^[a-z0-9][a-z0-9-]{0,62}$/.test(text), {
  error: "must be as it stands in signatures, for example eu-central-1 or s3",
});

/** Keys of AWS, with which requests are signed outside of the sandbox (Signature Version 4). */
function awsKeysWith<Source extends z.ZodType>(keySource: Source) {
  return z
    .strictObject({
      hosts: z.array(hostEntry).min(1).describe("The hosts whose requests are signed, as in an allow-list"),
      regions: z
        .array(scopePart)
        .min(1)
        .optional()
        .describe("The only regions that requests are signed for; without it, any"),
      services: z
        .array(scopePart)
        .min(1)
        .optional()
        .describe("The only services that requests are signed for, such as s3; without it, any"),
      plain_http: z
        .boolean()
        .default(false)
        .describe(
          "Whether requests without TLS are signed as well; the session token can then be read on the way",
        ),
      access_key_id: keySource.optional().describe("Where the access key id is read"),
      secret_access_key: keySource.optional().describe("Where the secret access key is read"),
      session_token: keySource.optional().describe("Where the session token of temporary keys is read"),
      command: z
        .array(z.string())
        .min(1)
        .optional()
        .describe(
          "Instead of these three: the program of this machine, with its arguments, that prints all of them as a `credential_process` of AWS does",
        ),
    })
    .refine((secret) => hasKeys(secret), {
      error: "needs either command, or access_key_id and secret_access_key",
    });
}

function hasKeys({
  command,
  access_key_id: id,
  secret_access_key: key,
  session_token: token,
}: {
  command?: unknown;
  access_key_id?: unknown;
  secret_access_key?: unknown;
  session_token?: unknown;
}): boolean {
  return command === undefined ? id !== undefined && key !== undefined : !(id ?? key ?? token);
}

export const configuredAwsKeys = awsKeysWith(configuredSource);
export const callersAwsKeys = awsKeysWith(callersSource);

export type AwsKeysRule = z.output<typeof callersAwsKeys>;
export type SecretSource = z.output<typeof callersSource>;
