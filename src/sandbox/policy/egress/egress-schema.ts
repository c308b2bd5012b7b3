import { z } from "zod";
import { callersAwsKeys, configuredAwsKeys } from "./aws-keys-schema.js";
import { canarySchema } from "./canary-schema.js";
import { hostEntry } from "./host-entry.js";

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

const variable = z.string().refine((text) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(text), {
  error: "must be the name of an environment variable",
});

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
