import { execFile } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { isAbsolute, join } from "node:path";
import { z } from "zod";
import type { Environment } from "../../config/env.js";
import type { InspectionOptions } from "../../egress/inspection.js";
import { type HeldSecret, newPlaceholder, USUAL_HEADERS } from "../../egress/secrets/held-secret.js";
import { SecretMask } from "../../egress/secrets/secret-mask.js";
import { BrigError, isBrigError } from "../../errors.js";
import { readTextFile } from "../../lib/bounded-file.js";
import {
  type EgressSettings,
  egressOptionSchema,
  type SecretRule,
} from "../../policy/egress/egress-schema.js";

/** A command may ask the user to unlock something. */
const COMMAND_TIMEOUT_MS = 60_000;
const LATE_OUTPUT_MS = 500;
const FILE_MAX_BYTES = 8 * 1024 * 1024;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Shorter ones would be found in harmless parts of answers, and masked there. */
const SECRET_MIN_CHARS = 8;
const SECRET_MAX_CHARS = 8192;

/**
 * Reads rules for requests, and the secrets from where they are on this machine. Null if there are neither. Of several
 * sources each has to allow a request, and the first one that names a secret decides about it. Error: `usage.invalid`.
 */
export async function readEgress(
  sources: readonly EgressSettings[],
  environment: Environment,
): Promise<InspectionOptions | null> {
  const parsed = sources.map(parsedSettings);
  const rules = parsed.flatMap(({ rules }, source) => rules.map((rule) => ({ ...rule, source })));
  const secrets = Object.assign({}, ...parsed.map(({ secrets }) => secrets).reverse()) as ParsedSecrets;
  const caFiles = [...new Set(parsed.flatMap(({ ca_files: files }) => files))];
  if (rules.length === 0 && Object.keys(secrets).length === 0) return null;
  const extra = environment.variables.NODE_EXTRA_CA_CERTS;
  // Node reads this variable itself, but only where no other authorities are given.
  const files = caFiles.length > 0 && extra ? [...caFiles, extra] : caFiles;
  const held = await Promise.all(
    Object.entries(secrets).map(async ([name, secret]) => await holdSecret(name, secret, environment)),
  );
  return {
    rules,
    secrets: held,
    mask: held.length > 0 ? new SecretMask(held) : undefined,
    authorities: await Promise.all(files.map(async (file) => await readAuthorities(file, environment))),
  };
}

/** Reads those secrets that can be read now, only to hide them in what is shown. Error: `usage.invalid`. */
export async function readableSecrets(
  written: EgressSettings,
  environment: Environment,
): Promise<{ secrets: HeldSecret[]; unreadable: BrigError[] }> {
  const { secrets } = parsedSettings(written);
  const read = await Promise.allSettled(
    Object.entries(secrets).map(async ([name, secret]) => await holdSecret(name, secret, environment)),
  );
  const unreadable = read.flatMap((one): BrigError[] => {
    if (one.status === "fulfilled") return [];
    if (isBrigError(one.reason)) return [one.reason];
    throw one.reason;
  });
  return { secrets: read.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])), unreadable };
}

type ParsedSecrets = ReturnType<typeof parsedSettings>["secrets"];

function parsedSettings(written: EgressSettings) {
  const parsed = egressOptionSchema.safeParse(written);
  if (parsed.success) return parsed.data;
  throw new BrigError(`the egress settings are not valid:\n${z.prettifyError(parsed.error)}`, {
    code: "usage.invalid",
    cause: parsed.error,
  });
}

async function holdSecret(name: string, secret: SecretRule, environment: Environment): Promise<HeldSecret> {
  const value = await readSecret(name, secret, environment);
  if (value.length < SECRET_MIN_CHARS || value.length > SECRET_MAX_CHARS || !/^[\x21-\x7e]+$/.test(value))
    throw new BrigError(
      `the secret ${name} does not have ${SECRET_MIN_CHARS} to ${SECRET_MAX_CHARS} printable ASCII characters without spaces`,
      { code: "usage.invalid", hint: "look at where the secret is read from" },
    );
  const { hosts, headers = USUAL_HEADERS, query, plain_http: plainHttp } = secret;
  return { name, value, placeholder: newPlaceholder(value), hosts, headers, query, plainHttp };
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

async function readSecret(
  name: string,
  { env, file, command, value }: SecretRule,
  environment: Environment,
): Promise<string> {
  if (value !== undefined) return value;
  if (env !== undefined) {
    const found = environment.variables[env];
    if (found) return found;
    throw new BrigError(`the secret ${name} cannot be read: the variable ${env} is not set`, {
      code: "usage.invalid",
      hint: `set ${env} for brig, or remove the secret from the configuration`,
    });
  }
  const text =
    command === undefined
      ? await readText(file ?? "", { of: `the file of the secret ${name}`, environment })
      : await runCommand(name, command);
  return text.replace(/\r?\n$/, "");
}

async function readText(
  written: string,
  { of, environment }: { of: string; environment: Environment },
): Promise<string> {
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

/** What it prints may be a part of the secret, so it is in no message and no cause. */
async function runCommand(name: string, [program = "", ...args]: readonly string[]): Promise<string> {
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
  throw new BrigError(`the secret ${name} cannot be read: ${JSON.stringify(program)} has failed`, {
    code: "usage.invalid",
    hint: "run the command by hand",
  });
}
