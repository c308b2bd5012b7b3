import { z } from "zod";
import { BrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { type AwsCredentials, AwsKeys, type TimedCredentials } from "../../egress/secrets/aws/aws-keys.js";
import {
  awsVariables,
  type HeldAwsSecret,
  newAwsPlaceholders,
} from "../../egress/secrets/aws/held-aws-secret.js";
import type { AwsKeysRule, SecretSource } from "../../policy/egress/aws-keys-schema.js";
import { readSource, runCommand } from "./read-source.js";

/** The output of a `credential_process` of AWS. */
const printedKeys = z.object({
  Version: z.literal(1),
  AccessKeyId: z.string(),
  SecretAccessKey: z.string(),
  SessionToken: z.string().min(1).nullish(),
  /** Only keys that expire have it: a time in ISO 8601. */
  Expiration: z
    .string()
    .refine((text) => !Number.isNaN(Date.parse(text)))
    .nullish(),
});

interface HoldOptions {
  environment: Environment;
  /** Called with keys that were read anew because the ones before were about to expire. */
  onRenewed?: ((credentials: AwsCredentials) => void) | undefined;
}

/** Reads keys of AWS from where they are on this machine, and again before they expire. Error: `usage.invalid`. */
export async function holdAwsKeys(
  name: string,
  rule: AwsKeysRule,
  { environment, onRenewed }: HoldOptions,
): Promise<HeldAwsSecret> {
  const read = async () => checked(name, await readKeys(name, rule, environment));
  const first = await read();
  const { hosts, regions = null, services = null, plain_http: plainHttp } = rule;
  const placeholders = newAwsPlaceholders(first.credentials);
  const variables = awsVariables(name, placeholders);
  const keys = new AwsKeys(first, { read, onRenewed });
  return { name, variables, keys, placeholders, hosts, regions, services, plainHttp };
}

function checked(name: string, found: TimedCredentials): TimedCredentials {
  if (!/^[A-Z0-9]{16,128}$/.test(found.credentials.accessKeyId))
    throw new BrigError(`the access_key_id of the secret ${name} is not an access key id of AWS`, {
      code: "usage.invalid",
      hint: "it has at least 16 capitals and digits, such as AKIAIOSFODNN7EXAMPLE",
    });
  return found;
}

async function readKeys(
  name: string,
  { command, access_key_id: id, secret_access_key: key, session_token: token }: AwsKeysRule,
  environment: Environment,
): Promise<TimedCredentials> {
  const part = async (source: SecretSource | undefined, of: string) =>
    await readSource(source ?? {}, { of: `the ${of} of the keys ${name}`, environment });
  if (command === undefined)
    return {
      credentials: {
        accessKeyId: await part(id, "access_key_id"),
        secretAccessKey: await part(key, "secret_access_key"),
        sessionToken: token === undefined ? null : await part(token, "session_token"),
      },
      expiresAtMs: null,
    };
  const printed = printedBy(await runCommand(command, `egress.aws_keys.${name}`), name);
  const { Expiration: expiration } = printed;
  return {
    credentials: {
      accessKeyId: await part({ value: printed.AccessKeyId }, "AccessKeyId"),
      secretAccessKey: await part({ value: printed.SecretAccessKey }, "SecretAccessKey"),
      sessionToken: printed.SessionToken ? await part({ value: printed.SessionToken }, "SessionToken") : null,
    },
    expiresAtMs: expiration ? Date.parse(expiration) : null,
  };
}

/** Nothing of what was printed is in the error. */
function printedBy(text: string, name: string): z.output<typeof printedKeys> {
  const parsed = printedKeys.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new BrigError(`the command of the keys ${name} does not print what a credential_process prints`, {
    code: "usage.invalid",
    hint: 'it has to print JSON with "Version": 1, "AccessKeyId" and "SecretAccessKey", and a time in "Expiration" if they expire, as aws configure export-credentials does',
  });
}
