import { z } from "zod";

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const command = z.union([z.string(), z.array(z.string()), z.null()]);

/** `KEY=value` lines, or a table. A key without a value takes it from outside. */
const variables = z.union([z.array(z.string()), z.record(z.string(), scalar)]);

const buildSchema = z.union([
  z.string(),
  z.strictObject({
    context: z.string().optional(),
    dockerfile: z.string().optional(),
    args: variables.optional(),
    tags: z.unknown().optional(),
    labels: z.unknown().optional(),
  }),
]);

const volumeSchema = z.union([
  z.string(),
  z.looseObject({
    type: z.string(),
    source: z.string().optional(),
    target: z.string(),
    read_only: z.boolean().optional(),
  }),
]);

const size = z.union([z.string(), z.number()]);

/** The keys that brig honours. Any other key of a service is refused, but for those that change nothing for a task. */
export const serviceSchema = z.object({
  image: z.string().optional(),
  build: buildSchema.optional(),
  command: command.optional(),
  entrypoint: command.optional(),
  environment: variables.optional(),
  working_dir: z.string().startsWith("/", "it must be an absolute path").optional(),
  user: z.union([z.string().min(1), z.number().int().min(0)]).optional(),
  network_mode: z.string().optional(),
  volumes: z.array(volumeSchema).optional(),
  cpus: size.optional(),
  mem_limit: size.optional(),
  deploy: z
    .strictObject({
      resources: z.strictObject({
        limits: z.strictObject({ cpus: size.optional(), memory: size.optional() }).optional(),
        reservations: z.strictObject({ cpus: size.optional(), memory: size.optional() }).optional(),
      }),
    })
    .optional(),
});

export type ServiceSettings = z.output<typeof serviceSchema>;
export type BuildSettings = z.output<typeof buildSchema>;
export type VariableSettings = z.output<typeof variables>;

/** Keys of a service that make no difference for one container that brig starts and ends itself. */
export const harmlessKeys = [
  "annotations",
  "attach",
  "container_name",
  "expose",
  "hostname",
  "init",
  "labels",
  "logging",
  "mem_reservation",
  "platform",
  "profiles",
  "pull_policy",
  "restart",
  "stdin_open",
  "stop_grace_period",
  "stop_signal",
  "tty",
];
