import { z } from "zod";
import type { Environment } from "../../config/env.js";
import {
  type AwsCredentials,
  awsVariables,
  type HeldAwsSecret,
  newAwsPlaceholders,
} from "../../egress/secrets/aws/held-aws-secret.js";
import { BrigError } from "../../errors.js";
import { parseJson } from "../../lib/json/parse-json.js";
import type { AwsKeysRule, SecretSource } from "../../policy/egress/aws-keys-schema.js";
import { readSource, runCommand } from "./read-source.js";

/** What a `credential_process` of AWS prints. */
const printedKeys = z.object({
  Version: z.literal(1),
  AccessKeyId: z.string(),
  SecretAccessKey: z.string(),
  SessionToken: z.string().min(1).nullish(),
});

/** Reads keys of AWS from where they are on this machine. Error: `usage.invalid`. */
export async function holdAwsKeys(
  name: string,
  rule: AwsKeysRule,
  environment: Environment,
): Promise<HeldAwsSecret> {
  const credentials = await readKeys(name, rule, environment);
  if (!/^[A-Z0-9]{16,128}$/.test(credentials.accessKeyId))
    throw new BrigError(`the access_key_id of the secret ${name} is not an access key id of AWS`, {
      code: "usage.invalid",
      hint: "it has at least 16 capitals and digits, such as AKIAIOSFODNN7EXAMPLE",
    });
  const { hosts, regions = null, services = null, plain_http: plainHttp } = rule;
  const placeholders = newAwsPlaceholders(credentials);
  const variables = awsVariables(name, placeholders);
  return { name, variables, credentials, placeholders, hosts, regions, services, plainHttp };
}

async function readKeys(
  name: string,
  { command, access_key_id: id, secret_access_key: key, session_token: token }: AwsKeysRule,
  environment: Environment,
): Promise<AwsCredentials> {
  const part = async (source: SecretSource | undefined, of: string) =>
    await readSource(source ?? {}, { of: `the ${of} of the keys ${name}`, environment });
  if (command === undefined)
    return {
      accessKeyId: await part(id, "access_key_id"),
      secretAccessKey: await part(key, "secret_access_key"),
      sessionToken: token === undefined ? null : await part(token, "session_token"),
    };
  const printed = printedBy(await runCommand(command, `egress.aws_keys.${name}`), name);
  return {
    accessKeyId: await part({ value: printed.AccessKeyId }, "AccessKeyId"),
    secretAccessKey: await part({ value: printed.SecretAccessKey }, "SecretAccessKey"),
    sessionToken: printed.SessionToken ? await part({ value: printed.SessionToken }, "SessionToken") : null,
  };
}

/** Nothing of what was printed is in the error. */
function printedBy(text: string, name: string): z.output<typeof printedKeys> {
  const parsed = printedKeys.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new BrigError(`the command of the keys ${name} does not print what a credential_process prints`, {
    code: "usage.invalid",
    hint: 'it has to print JSON with "Version": 1, "AccessKeyId" and "SecretAccessKey", as aws configure export-credentials does',
  });
}
