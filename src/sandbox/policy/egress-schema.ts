import { z } from "zod";
import { normalPattern } from "./hosts.js";

const variable = z.string().refine((text) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(text), {
  error: "must be the name of an environment variable",
});

/** A secret that is not real, and that is planted in each sandbox to see whether it leaves. */
const canarySchema = z
  .strictObject({
    form: z
      .enum(["aws-access-key", "github-token", "token"])
      .default("token")
      .describe("What it looks like; each sandbox gets another one"),
    variable: variable
      .optional()
      .describe("The variable in which commands find it; with aws-access-key, how its two variables begin"),
    file: z
      .string()
      .refine((path) => /^\/[^\0]+$/.test(path), { error: "must be an absolute path" })
      .optional()
      .describe("The file of the sandbox that has it"),
  })
  .refine(({ variable: name, file }) => name !== undefined || file !== undefined, {
    error: "needs a variable, a file or both",
  });

/** One entry of an allow-list, in its normal spelling. */
const hostEntry = z.string().transform((text, context) => {
  const pattern = normalPattern(text);
  if (pattern.kind === "parsed" && !text.startsWith("@")) return pattern.text;
  const message = pattern.kind === "refused" ? pattern.reason : `"${text}" is a list of hosts: name one host`;
  context.issues.push({ code: "custom", message, input: text });
  return z.NEVER;
});

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

const configuredAwsKeys = awsKeysWith(configuredSource);
const callersAwsKeys = awsKeysWith(callersSource);

export type AwsKeysRule = z.output<typeof callersAwsKeys>;
export type SecretSource = z.output<typeof callersSource>;

const method = z
  .string()
  .refine((text) => /^[A-Z]{1,20}$/.test(text), { error: "must be a method in capitals, such as GET" });

const path = z
  .string()
  .refine((text) => /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/.test(text), {
    error: "must be a path that begins with / and has neither % nor ?",
  })
  .refine((text) => !/\/\/|\/\.{1,2}(?:\/|$)/.test(text), { error: "must not have //, /./ or /../" })
  .refine((text) => !text.includes("***"), { error: "must not have more than two * next to each other" });

const ruleSchema = z.strictObject({
  host: hostEntry.describe("The host, as in an allow-list; the allow-list has to allow it as well"),
  methods: z.array(method).min(1).optional().describe("Allowed methods; without it, all"),
  path: path
    .optional()
    .describe("Allowed paths: `*` stands for a part between slashes, `**` for anything; without it, all"),
  query: z
    .record(z.string().min(1), z.string())
    .optional()
    .describe(
      "The only allowed parameters and their values, in which `*` stands for anything; without it, all",
    ),
});

const headerName = z
  .string()
  .refine((text) => /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(text), { error: "must be the name of a header" })
  .transform((name) => name.toLowerCase());

const secretFields = {
  hosts: z.array(hostEntry).min(1).describe("Where the secret is sent to, as in an allow-list"),
  headers: z
    .array(headerName)
    .min(1)
    .optional()
    .describe("The headers in which the placeholder is replaced; without it, those that usually have keys"),
  query: z
    .array(z.string().min(1))
    .default([])
    .describe("The parameters of a URL in which the placeholder is replaced"),
  plain_http: z
    .boolean()
    .default(false)
    .describe("Whether the secret is also sent without TLS, where anybody on the way can read it"),
  env: z.string().min(1).optional().describe("The variable of this machine that has the secret"),
  file: z
    .string()
    .min(1)
    .optional()
    .describe("The file of this machine that has the secret, without its last line end"),
  command: z
    .array(z.string())
    .min(1)
    .optional()
    .describe("The program of this machine, with its arguments, that prints the secret"),
};

const configuredSecret = z
  .strictObject(secretFields)
  .refine((secret) => hasOne([secret.env, secret.file, secret.command]), {
    error: "needs exactly one of env, file and command",
  });

const callersSecret = z
  .strictObject({ ...secretFields, value: z.string().min(1).optional() })
  .refine((secret) => hasOne([secret.env, secret.file, secret.command, secret.value]), {
    error: "needs exactly one of env, file, command and value",
  });

function hasOne(values: readonly unknown[]): boolean {
  return values.filter((value) => value !== undefined).length === 1;
}

/** The schema of the settings that decide about requests to the hosts of an allow-list. */
function egressWith<Secret extends z.ZodType, AwsKeys extends z.ZodType>(secret: Secret, awsKeys: AwsKeys) {
  return z.strictObject({
    rules: z
      .array(ruleSchema)
      .default([])
      .describe("The only requests that the named hosts get; other hosts get any"),
    secrets: z
      .record(variable, secret)
      .default({})
      .describe("By the variable in which commands find a placeholder"),
    aws_keys: z
      .record(variable, awsKeys)
      .default({})
      .describe(
        "Keys of AWS, which sign requests and are never sent, by how the variables of their placeholders begin",
      ),
    canaries: z
      .record(z.string().regex(/^[A-Za-z0-9_-]{1,64}$/), canarySchema)
      .default({})
      .describe("Secrets that are not real: one that leaves fails the session"),
    ca_files: z
      .array(z.string().min(1))
      .default([])
      .describe("Files of certificate authorities, in PEM, that brig trusts besides those of Node.js"),
  });
}

/** `[egress]` of the configuration. */
export const egressSchema = egressWith(configuredSecret, configuredAwsKeys);
/** The option `egress` of `Sandbox.create`. */
export const egressOptionSchema = egressWith(callersSecret, callersAwsKeys);

type Egress = z.output<typeof egressOptionSchema>;
export type RequestRule = Egress["rules"][number];
/**
 * A rule of one of several sources, such as the configuration and a policy. Each source that names a host has to allow
 * the request.
 */
export type SourcedRule = RequestRule & { source?: number | undefined };
export type SecretRule = Egress["secrets"][string];

/**
 * Rules for requests to the hosts of an allow-list, and secrets that are put into requests outside of the sandbox.
 * Each secret has one of `env`, `file`, `command` and `value`.
 */
export type EgressSettings = z.input<typeof egressOptionSchema>;
