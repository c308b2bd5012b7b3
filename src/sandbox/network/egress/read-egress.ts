import { X509Certificate } from "node:crypto";
import { z } from "zod";
import { BrigError, isBrigError } from "../../../errors.js";
import type { Environment } from "../../../lib/env.js";
import { newCanary } from "../../egress/canaries/new-canary.js";
import type { InspectionOptions } from "../../egress/inspection.js";
import { type AwsCredentials, secretParts } from "../../egress/secrets/aws/aws-keys.js";
import { type HeldSecret, newPlaceholder, USUAL_HEADERS } from "../../egress/secrets/held-secret.js";
import { SecretMask } from "../../egress/secrets/secret-mask.js";
import {
  type EgressSettings,
  egressOptionSchema,
  type SecretRule,
} from "../../policy/egress/egress-schema.js";
import { holdAwsKeys } from "./hold-aws-keys.js";
import { readSource, readText } from "./read-source.js";

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Reads rules for requests, and the secrets from where they are on this machine. Null if there are neither. If there are several
 * sources, each has to allow a request, and the first one that names a secret decides about it. Error: `usage.invalid`.
 */
export async function readEgress(
  sources: readonly EgressSettings[],
  environment: Environment,
): Promise<InspectionOptions | null> {
  const parsed = sources.map(parsedSettings);
  const rules = parsed.flatMap(({ rules }, source) => rules.map((rule) => ({ ...rule, source })));
  const secrets = firstOfEach(parsed.map((one) => one.secrets));
  const awsKeys = firstOfEach(parsed.map((one) => one.aws_keys));
  const planted = firstOfEach(parsed.map((one) => one.canaries));
  const caFiles = [...new Set(parsed.flatMap(({ ca_files: files }) => files))];
  if (rules.length + Object.keys({ ...secrets, ...awsKeys, ...planted }).length === 0) return null;
  const extra = environment.variables.NODE_EXTRA_CA_CERTS;
  // Node reads this variable itself, but only where no other authorities are given.
  const files = caFiles.length > 0 && extra ? [...caFiles, extra] : caFiles;
  const held = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => await holdSecret(name, secret, environment)),
  );
  const renewed = (credentials: AwsCredentials) => mask?.add(secretParts(credentials));
  const awsSecrets = await Promise.all(
    Object.entries(awsKeys).map(
      async ([name, keys]) => await holdAwsKeys(name, keys, { environment, onRenewed: renewed }),
    ),
  );
  const canaries = Object.entries(planted).map(([name, { form, variable = null, file = null }]) =>
    newCanary(name, { form, variable, file }),
  );
  checkVariables([
    ...held.map(({ name }) => name),
    ...[...awsSecrets, ...canaries].flatMap((one) => Object.keys(one.variables)),
  ]);
  const hidden = [...held, ...awsSecrets.flatMap(({ keys }) => asValues(keys.newest))];
  const mask = hidden.length > 0 ? new SecretMask(hidden) : undefined;
  return {
    rules,
    secrets: held,
    awsSecrets,
    canaries,
    mask,
    authorities: await Promise.all(files.map(async (file) => await readAuthorities(file, environment))),
  };
}

/** Reads those secrets that can be read now, only to hide them in what is shown. Error: `usage.invalid`. */
export async function readableSecrets(
  written: EgressSettings,
  environment: Environment,
): Promise<{ secrets: { value: string }[]; unreadable: BrigError[] }> {
  const { secrets, aws_keys: awsKeys } = parsedSettings(written);
  const read = await Promise.allSettled([
    ...Object.entries(secrets).map(async ([name, secret]) => [await holdSecret(name, secret, environment)]),
    ...Object.entries(awsKeys).map(async ([name, keys]) =>
      asValues((await holdAwsKeys(name, keys, { environment })).keys.newest),
    ),
  ]);
  const unreadable = read.flatMap((one): BrigError[] => {
    if (one.status === "fulfilled") return [];
    if (isBrigError(one.reason)) return [one.reason];
    throw one.reason;
  });
  return { secrets: read.flatMap((one) => (one.status === "fulfilled" ? one.value : [])), unreadable };
}

function asValues(credentials: AwsCredentials): { value: string }[] {
  return secretParts(credentials).map((value) => ({ value }));
}

/** Merges the sources. If several have an entry of the same name, the first one counts. */
function firstOfEach<Entry>(sources: readonly Readonly<Record<string, Entry>>[]): Record<string, Entry> {
  return Object.assign({}, ...sources.toReversed());
}

function parsedSettings(written: EgressSettings) {
  const parsed = egressOptionSchema.safeParse(written);
  if (parsed.success) return parsed.data;
  throw new BrigError(`the egress settings are not valid:\n${z.prettifyError(parsed.error)}`, {
    code: "usage.invalid",
    cause: parsed.error,
  });
}

async function holdSecret(name: string, secret: SecretRule, environment: Environment): Promise<HeldSecret> {
  const value = await readSource(secret, { of: `the secret ${name}`, environment });
  const { hosts, headers = USUAL_HEADERS, query, plain_http: plainHttp } = secret;
  return { name, value, placeholder: newPlaceholder(value), hosts, headers, query, plainHttp };
}

function checkVariables(variables: readonly string[]): void {
  const twice = variables.find((variable, at) => variables.indexOf(variable) !== at);
  if (twice === undefined) return;
  throw new BrigError(`two secrets or canaries have the same variable, ${twice}`, {
    code: "usage.invalid",
    hint: "give one of them another name",
  });
}

async function readAuthorities(file: string, environment: Environment): Promise<string> {
  const of = "a file of certificate authorities";
  const text = await readText(file, { of, environment });
  try {
    for (const certificate of text.match(CERTIFICATE) ?? [""]) new X509Certificate(certificate);
    return text;
  } catch (cause) {
    throw new BrigError(`${of} has no certificates in PEM, or one that cannot be read: ${file}`, {
      code: "usage.invalid",
      cause,
    });
  }
}
