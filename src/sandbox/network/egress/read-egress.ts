import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { isAbsolute, join } from "node:path";
import { z } from "zod";
import { BrigError, isBrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import type { Environment } from "../../../lib/env.js";
import { parseJson } from "../../../lib/json/parse-json.js";
import { newCanary } from "../../egress/canaries/new-canary.js";
import type { InspectionOptions } from "../../egress/inspection.js";
import {
  type AwsCredentials,
  AwsKeys,
  awsVariables,
  type HeldAwsSecret,
  newAwsPlaceholders,
  secretParts,
  type TimedCredentials,
} from "../../egress/secrets/aws/aws-keys.js";
import { type HeldSecret, newPlaceholder, USUAL_HEADERS } from "../../egress/secrets/held-secret.js";
import { SecretMask } from "../../egress/secrets/secret-mask.js";
import { credentialsIn } from "../../egress/secrets/sent-headers.js";
import {
  type AwsKeysRule,
  type EgressSettings,
  egressOptionSchema,
  type SecretRule,
  type SecretSource,
} from "../../policy/egress-schema.js";

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
    authorities: await readTrusted(caFiles, environment),
  };
}

interface KeptAwsKeys extends Pick<HeldAwsSecret, "name" | "rule" | "placeholders"> {
  first: TimedCredentials;
}

/** What is read for a sandbox, with all secrets, as plain data. */
export interface KeptInspection
  extends Pick<InspectionOptions, "rules" | "secrets" | "canaries" | "sentHeaders" | "authorities"> {
  awsKeys: readonly KeptAwsKeys[];
}

export function keptInspection({ awsSecrets = [], mask: _mask, ...own }: InspectionOptions): KeptInspection {
  const awsKeys = awsSecrets.map(({ name, rule, keys, placeholders }) => ({
    ...{ name, rule, placeholders, first: keys.timed },
  }));
  return { ...own, awsKeys };
}

/** The same for another process. Nothing is read again but keys of AWS that expire, from where they were read. */
export function inspectionOf(
  { awsKeys, ...own }: KeptInspection,
  environment: Environment,
): InspectionOptions {
  const { secrets, sentHeaders } = own;
  const hidden = [...secrets, ...awsKeys.flatMap(({ first }) => asValues(first.credentials))];
  const mask = hidden.length > 0 || sentHeaders !== undefined ? new SecretMask(hidden) : undefined;
  mask?.add(credentialsIn(sentHeaders ?? []));
  const onRenewed = (credentials: AwsCredentials) => mask?.add(secretParts(credentials));
  const awsSecrets = awsKeys.map((keys) => heldAwsKeys(keys, { environment, onRenewed }));
  return { ...own, awsSecrets, mask };
}

/** The authorities in these files, in PEM. Error: `usage.invalid`. */
export async function readTrusted(caFiles: readonly string[], environment: Environment): Promise<string[]> {
  const extra = environment.variables.NODE_EXTRA_CA_CERTS;
  // Node trusts the authorities in NODE_EXTRA_CA_CERTS by itself, but not once a connection is given a list of its own.
  const files = caFiles.length > 0 && extra ? [...caFiles, extra] : caFiles;
  return await Promise.all(files.map(async (file) => await readAuthorities(file, environment)));
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
  const first = await readCheckedKeys(name, rule, environment);
  const placeholders = newAwsPlaceholders(first.credentials);
  return heldAwsKeys({ name, rule, first, placeholders }, { environment, onRenewed });
}

/** Keys of AWS with the placeholders that programs have for them. */
function heldAwsKeys(
  { name, rule, first, placeholders }: KeptAwsKeys,
  { environment, onRenewed }: HoldOptions,
): HeldAwsSecret {
  const { hosts, regions = null, services = null, plain_http: plainHttp } = rule;
  const variables = awsVariables(name, placeholders);
  const read = async () => await readCheckedKeys(name, rule, environment);
  const keys = new AwsKeys(first, { read, onRenewed });
  return { name, rule, variables, keys, placeholders, hosts, regions, services, plainHttp };
}

async function readCheckedKeys(
  name: string,
  rule: AwsKeysRule,
  environment: Environment,
): Promise<TimedCredentials> {
  return checked(name, await readKeys(name, rule, environment));
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

/** Exactly one of them is there. */
interface Source {
  env?: string | undefined;
  file?: string | undefined;
  command?: readonly string[] | undefined;
  value?: string | undefined;
}

interface ReadOptions {
  /** The name of the source for errors, for example "the secret KEY". */
  of: string;
  environment: Environment;
}

/** A command may ask the user to unlock something. */
const COMMAND_TIMEOUT_MS = 60_000;
const LATE_OUTPUT_MS = 500;
const FILE_MAX_BYTES = 8 * 1024 * 1024;
/** Shorter ones would be found in harmless parts of answers, and masked there. */
const SECRET_MIN_CHARS = 8;
const SECRET_MAX_CHARS = 8192;

/**
 * Reads a secret from where it is on this machine. `of` names it in errors: `usage.invalid`, also for what cannot be sent in
 * a header.
 */
export async function readSource(source: Source, { of, environment }: ReadOptions): Promise<string> {
  const value = await readUnchecked(source, { of, environment });
  if (value.length < SECRET_MIN_CHARS || value.length > SECRET_MAX_CHARS || !/^[\x21-\x7e]+$/.test(value))
    throw new BrigError(
      `${of} does not have ${SECRET_MIN_CHARS} to ${SECRET_MAX_CHARS} printable ASCII characters without spaces`,
      { code: "usage.invalid", hint: "look at where the secret is read from" },
    );
  return value;
}

async function readUnchecked(
  { env, file, command, value }: Source,
  { of, environment }: ReadOptions,
): Promise<string> {
  if (value !== undefined) return value;
  if (env !== undefined) {
    const found = environment.variables[env];
    if (found) return found;
    throw new BrigError(`${of} cannot be read: the variable ${env} is not set`, {
      code: "usage.invalid",
      hint: `set ${env} for brig, or remove the secret from the configuration`,
    });
  }
  const text =
    command === undefined
      ? await readText(file ?? "", { of: `the file of ${of}`, environment })
      : await runCommand(command, of);
  return text.replace(/\r?\n$/, "");
}

/** Error: `usage.invalid`. */
export async function readText(written: string, { of, environment }: ReadOptions): Promise<string> {
  const path = written.startsWith("~/") ? join(environment.home, written.slice(2)) : written;
  if (!isAbsolute(path))
    throw new BrigError(`${of} is not an absolute path: ${JSON.stringify(written)}`, {
      code: "usage.invalid",
      hint: "begin it with / or ~/",
    });
  const read = await readTextFile(path, FILE_MAX_BYTES);
  if (read.kind === "text") return read.text;
  const reason = read.kind === "missing" ? "does not exist" : read.reason;
  throw new BrigError(`${of} cannot be used: ${path} ${reason}`, { code: "usage.invalid" });
}

/** Runs a command and returns its output. This may be a part of the secret, so it is in no message and no cause. */
async function runCommand([program = "", ...args]: readonly string[], of: string): Promise<string> {
  const stdout = await new Promise<string | null>((resolve) => {
    const limit = { timeout: COMMAND_TIMEOUT_MS, killSignal: "SIGKILL" } as const;
    const child = execFile(program, args, limit, (error, text) => resolve(error === null ? text : null));
    // A process that it leaves behind may keep its output open for ever.
    child.once("exit", () => {
      const outputs = [child.stdout, child.stderr];
      setTimeout(() => outputs.forEach((output) => void output?.destroy()), LATE_OUTPUT_MS).unref();
    });
  });
  if (stdout !== null) return stdout;
  throw new BrigError(`${of} cannot be read: ${JSON.stringify(program)} has failed`, {
    code: "usage.invalid",
    hint: "run the command by hand",
  });
}
