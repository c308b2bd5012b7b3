import { z } from "zod";

const differenceShape = {
  assertion: z.string().describe("The name of what is read back"),
  promised: z.string(),
  kernel: z.string(),
};

export const proofSchema = z.object({
  policy: z.string(),
  differences: z.array(z.object(differenceShape)).describe("What the kernel says otherwise: nothing"),
  notProvable: z.array(z.object({ ...differenceShape, reason: z.string() })),
  summary: z.record(z.string(), z.string()),
  engine: z.object({
    product: z.string(),
    version: z.string(),
    kernel: z.string(),
    cgroupVersion: z.string(),
  }),
  runtime: z.string(),
  imageId: z.string(),
  egress: z
    .object({
      ruledHosts: z.array(z.string()),
      secrets: z.array(z.object({ name: z.string(), hosts: z.array(z.string()) })),
      awsKeys: z.array(z.object({ name: z.string(), hosts: z.array(z.string()) })),
      canaries: z.array(z.string()),
    })
    .optional()
    .describe("What brig enforces outside of the sandbox, by name"),
});
/** The kernel's answers about the policy of a sandbox of a service. */
export type RemoteProof = z.infer<typeof proofSchema>;

export const receiptSchema = z.object({
  findings: z
    .array(
      z.object({
        path: z.string(),
        reasons: z.array(z.enum(["runs", "repository", "setuid", "capabilities", "device", "owner"])),
        obeyedBy: z.string().optional(),
        mode: z.int(),
        uid: z.int(),
        sizeBytes: z.int(),
        sha256: z.string().nullable(),
        isNeutralised: z.boolean(),
      }),
    )
    .describe("Files on the host that may run by themselves. A sandbox of a service sees none of the host's"),
  omitted: z.int().describe("How many more there are"),
  incomplete: z
    .enum(["time", "closed", "gone", "kept", "failed"])
    .nullable()
    .describe("Why not everything was looked at. gone: the container had ended by itself"),
});
/** What a sandbox of a service has left. */
export type RemoteReceipt = z.infer<typeof receiptSchema>;

const attemptsSchema = z.object({
  startedAtMs: z.number().describe("When the first of them began, since 1970"),
  count: z.int(),
  phase: z.enum(["setup", "run"]),
  callId: z.string().nullable(),
  program: z.string().nullable(),
  way: z.enum(["http", "connect", "socks", "direct", "name"]).nullable(),
  host: z.string().nullable(),
  port: z.int().nullable(),
  method: z.string().nullable(),
  path: z.string().nullable(),
  outcome: z.enum(["allowed", "denied", "failed"]),
  reason: z.string().nullable().describe("The kind of a denial, such as no-rule, or the errno of a failure"),
  message: z.string().nullable(),
  rule: z.string().nullable().describe("The entry of the list that allowed them"),
  bytesOut: z.number(),
  bytesIn: z.number(),
  durationMs: z.number(),
});

export const egressSchema = z.object({
  attempts: z.array(attemptsSchema).describe("What its programs tried to reach; equal attempts are one"),
  proposal: z
    .object({
      network: z.string().describe("The shortest list of hosts that allows what was reached"),
      entries: z.array(
        z.object({
          entry: z.string(),
          hosts: z.array(z.string()),
          callIds: z.array(z.string()),
          programs: z.array(z.string()),
        }),
      ),
      left: z.array(z.object({ host: z.string(), message: z.string() })).describe("Tried in vain"),
      isComplete: z.boolean(),
    })
    .nullable()
    .describe("Null unless the network is learn"),
});
/** What programs of a sandbox of a service tried to reach. */
export type RemoteEgress = z.infer<typeof egressSchema>;
