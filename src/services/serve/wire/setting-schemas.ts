import { z } from "zod";

const MAX_LABELS = 64;
const MAX_LABEL_NAME = 128;
const MAX_LABEL_VALUE = 256;
const MAX_NETWORK_LENGTH = 65_536;
const MAX_KEY_LENGTH = 255;

const labelName = z
  .string()
  .min(1, "the name of a label must not be empty")
  .max(MAX_LABEL_NAME, `the name of a label may have at most ${MAX_LABEL_NAME} characters`)
  .regex(/^[^=\0]*$/, "the name of a label must not contain = or NUL");
const labelValue = z
  .string()
  .max(MAX_LABEL_VALUE, `the value of a label may have at most ${MAX_LABEL_VALUE} characters`);

/** What a client says about a sandbox, to find it by. */
export const labelsSchema = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= MAX_LABELS, {
    error: `a sandbox may have at most ${MAX_LABELS} labels`,
  })
  .describe("What the client says about the sandbox, to find it by. The service only keeps them");

const wantedLabel = z
  .string()
  .max(MAX_LABEL_NAME + 1 + MAX_LABEL_VALUE)
  .regex(/^[^=]+=/, "must be NAME=VALUE, with = written as %3D");

export const listSandboxesSchema = z.strictObject({
  label: z
    .preprocess((one) => (typeof one === "string" ? [one] : one), z.array(wantedLabel).max(MAX_LABELS))
    .optional()
    .describe("NAME=VALUE: only sandboxes that have this label. Repeated: only those that have all of them"),
});

/** Whether a sandbox has all labels of a query, each written NAME=VALUE. */
export function hasLabels(labels: Readonly<Record<string, string>>, wanted: readonly string[]): boolean {
  return wanted.every((one) => {
    const at = one.indexOf("=");
    return labels[one.slice(0, at)] === one.slice(at + 1);
  });
}

const listedHosts = z.templateLiteral(["allowlist:", z.string()]);
const shortEnough = [
  (network: string) => network.length <= MAX_NETWORK_LENGTH,
  `a network may have at most ${MAX_NETWORK_LENGTH} characters`,
] as const;

/** The network that a sandbox is created with. */
export const networkSchema = z.union([z.enum(["none", "full"]), listedHosts]).refine(...shortEnough);

/** The same, or one that lets programs reach every public host and records which they were. */
export const createdNetworkSchema = z
  .union([z.literal("learn"), z.templateLiteral(["learn:", z.string()]), networkSchema])
  .refine(...shortEnough);

export const setNetworkSchema = z.strictObject({
  network: z
    .union([z.literal("none"), listedHosts])
    .refine(...shortEnough)
    .describe("none, or allowlist:HOST,… for the hosts that may be reached from now on"),
});

export const extendSchema = z.strictObject({
  lifeMs: z.int().min(1).describe("It expires so long from now, but never after the service's longest life"),
});

export const createHeadersSchema = z.object({
  "idempotency-key": z
    .string()
    .regex(
      new RegExp(`^[\\x20-\\x7e]{1,${MAX_KEY_LENGTH}}$`),
      `must be 1 to ${MAX_KEY_LENGTH} characters of ASCII`,
    )
    .optional()
    .describe(
      "A text of the client's choice. A request with the same key and the same body gives the sandbox of the first one, as long as that is there",
    ),
});
