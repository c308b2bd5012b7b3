import { z } from "zod";
import { MAX_TIMEOUT_MS } from "../../../sandbox/index.js";
import { networkSchema } from "./setting-schemas.js";

const MAX_SECRETS = 64;
const MAX_HOSTS = 256;
const MAX_SECRET_CHARS = 8192;
const MAX_ARGUMENTS = 4096;

const host = z.string().min(1).max(512);

/** Values that are put into requests outside of the sandbox, and are in no record, log or answer. */
export const secretsSchema = z
  .record(
    z
      .string()
      .max(256)
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable"),
    z.strictObject({
      value: z
        .string()
        .min(1)
        .max(MAX_SECRET_CHARS)
        .describe("Goes to these hosts only; commands find a placeholder in the variable"),
      hosts: z.array(host).min(1).max(MAX_HOSTS).describe("As in a list of allowed hosts"),
      headers: z
        .array(host)
        .min(1)
        .max(MAX_HOSTS)
        .optional()
        .describe("Where the placeholder is replaced. Default: the headers that usually have keys"),
      query: z
        .array(host)
        .max(MAX_HOSTS)
        .optional()
        .describe("The parameters of a URL in which it is replaced. Default: none"),
      plainHttp: z.boolean().optional().describe("Whether it is also sent without TLS. Default: no"),
    }),
  )
  .refine((secrets) => Object.keys(secrets).length <= MAX_SECRETS, {
    error: `a sandbox may have at most ${MAX_SECRETS} secrets`,
  })
  .describe(
    "By the variable in which commands find a placeholder for each. Needs a list of allowed hosts as network",
  );
export type RemoteSecrets = z.output<typeof secretsSchema>;

export const setupSchema = z
  .strictObject({
    command: z
      .array(z.string().regex(/^[^\0]*$/, "must not contain NUL"))
      .min(1)
      .max(MAX_ARGUMENTS)
      .describe("The program and its arguments. No shell reads them"),
    network: networkSchema
      .optional()
      .describe(
        "While it runs. Default: the network of the sandbox. A list needs a sandbox that may have one",
      ),
    timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS).optional().describe("Default: ten minutes"),
  })
  .describe(
    "A command that runs before the sandbox is handed over, with a network of its own. If it fails, there is no sandbox. Everything that it has started is ended",
  );
