import { posix } from "node:path";
import { z } from "zod";
import { egressSchema } from "./egress-schema.js";
import { LIMIT_BOUNDS } from "./limit-bounds.js";
import { parseNetwork } from "./network.js";

const access = z.enum(["ro", "rw"]);

const containerPath = z
  .string()
  .refine(
    (path) => path.startsWith("/") && posix.normalize(path) === path && path !== "/" && !path.endsWith("/"),
    {
      error: "must be an absolute path without `..`, doubled or trailing slashes, and not /",
    },
  )
  .refine((path) => !/[\0\n,:]/.test(path), { error: "must not contain NUL, newline, comma or colon" });

const fileName = z
  .string()
  .refine((name) => name !== "" && name !== "." && name !== ".." && !/[/\0]/.test(name), {
    error: "must be the name of one directory entry",
  });

const octalMode = z
  .string()
  .regex(/^[01]?[0-7]{3}$/, { error: 'must be octal permission bits such as "700" or "1777"' });

const network = z.string().transform((text, context) => {
  const parsed = parseNetwork(text);
  if (parsed.kind === "parsed") return parsed.network;
  context.issues.push({ code: "custom", message: parsed.reason, input: text });
  return z.NEVER;
});

const user = z.string().regex(/^(?:host|root|[0-9]{1,9}:[0-9]{1,9})$/, {
  error: 'must be "host", "root" or "uid:gid"',
});

const workspaceSchema = z.strictObject({
  access: access.describe("Whether commands may change the workspace"),
  protected: z
    .array(fileName)
    .describe("Names at the top of every writable directory that stay read-only, existing or not"),
});

const tmpfsSchema = z.strictObject({
  path: containerPath.describe("Where the memory-backed directory appears"),
  sizeMb: z.int().min(1).describe("Largest size in MiB; counts as memory"),
  maxInodes: z.int().min(16).describe("Largest number of files, directories and links"),
  exec: z.boolean().describe("Whether programs in it may be run"),
  mode: octalMode.describe("Permission bits of the directory, octal; its owner is the sandbox's user"),
});

const limitsSchema = z.strictObject({
  memoryMb: z
    .int()
    .min(LIMIT_BOUNDS.memoryMb.min)
    .describe("Memory of all processes together, in MiB, with no swap; the kernel kills above it"),
  cpus: z
    .number()
    .min(LIMIT_BOUNDS.cpus.min)
    .describe("CPU cores that may be used, at most those of the machine"),
  pids: z
    .int()
    .min(LIMIT_BOUNDS.pids.min)
    .max(LIMIT_BOUNDS.pids.max)
    .describe("Processes and threads that may exist at once"),
  openFiles: z.int().min(64).describe("Open files of each process"),
  shmMb: z.int().min(1).describe("Size of /dev/shm in MiB; counts as memory"),
  coreMb: z.int().min(0).describe("Largest core dump in MiB; 0 for none"),
});

/** Limits that whoever opens a sandbox may set in place of the policy's. */
export const chosenLimitsSchema = limitsSchema.pick({ memoryMb: true, cpus: true, pids: true }).partial();
/** Limits of a sandbox: `memoryMb` in MiB, at least 64; `cpus`, which may be a fraction; `pids`, processes and threads, at least 16. */
export type SandboxLimits = z.infer<typeof chosenLimitsSchema>;

const overridesSchema = z.strictObject({
  network: z.boolean().describe("Whether --network may open more than this policy does"),
  writableRoots: z.boolean().describe("Whether --add-dir and writable_roots may add writable directories"),
});

/** A sandbox policy, as in its TOML file. No field but `egress` is optional: nothing is left to a default. */
export const policySchema = z
  .strictObject({
    rootfs: access.describe("The image's own file system: ro or rw"),
    network: network.describe("none, full, allowlist:HOST,…, or learn: see docs/network.md"),
    user: user.describe('Who commands run as: "host" (the caller\'s uid:gid), "root", or "uid:gid"'),
    home: containerPath.describe("HOME of commands; with rootfs = ro it must be one of the tmpfs paths"),
    capabilities: z
      .enum(["none", "full-access", "engine-default"])
      .describe("Linux capabilities that processes keep"),
    noNewPrivileges: z.boolean().describe("Whether setuid programs and file capabilities have no effect"),
    seccomp: z
      .enum(["brig", "full-access", "engine-default"])
      .describe("System call filter: brig's own list, its wider one for root, or the engine's"),
    workspace: workspaceSchema.describe("The directory that commands work in"),
    tmpfs: z.array(tmpfsSchema).describe("Memory-backed directories, always nosuid and nodev"),
    limits: limitsSchema.describe("Limits of the whole sandbox"),
    overrides: overridesSchema.describe("What a flag or the configuration may loosen"),
    egress: egressSchema
      .optional()
      .describe(
        "Rules for requests to the hosts of an allow-list, and secrets for them: see docs/request-rules.md",
      ),
  })
  .superRefine((policy, context) => {
    const refuse = (path: string[], message: string) => {
      context.addIssue({ code: "custom", path, message });
    };
    const inMemoryMb = policy.limits.shmMb + policy.tmpfs.reduce((sum, { sizeMb }) => sum + sizeMb, 0);
    if (inMemoryMb * 2 > policy.limits.memoryMb)
      refuse(
        ["limits", "memoryMb"],
        `tmpfs and shm together may take ${inMemoryMb} MiB, more than half of ${policy.limits.memoryMb} MiB memory: ` +
          "if they are full, commands have too little left",
      );
    const paths = policy.tmpfs.map(({ path }) => path);
    if (new Set(paths).size !== paths.length) refuse(["tmpfs"], "two entries have the same path");
    if (policy.rootfs === "ro" && !paths.includes(policy.home))
      refuse(["home"], `${policy.home} is not one of the tmpfs paths, so nothing could be written there`);
  });

export type Policy = z.infer<typeof policySchema>;

export interface LoadedPolicy {
  /** The mode, or the file's path as it was written. */
  name: string;
  /** Absolute path of the file. */
  file: string;
  policy: Policy;
}
