import { createHash, type KeyObject, sign, verify } from "node:crypto";
import { z } from "zod";
import { batchFileSchema } from "../batch/batch-settings.js";

/** File in the folder of a sealed run. */
export const SEAL_FILE = "seal.json";

export const STATEMENT_TYPE = "https://in-toto.io/Statement/v1";
export const PREDICATE_TYPE = "urn:brigbox:batch-run:v1";

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

const subjectSchema = z.strictObject({
  name: z.string().describe("A file, relative to the folder of the run"),
  digest: z.strictObject({ sha256 }),
  annotations: z.strictObject({ sizeBytes: z.int().min(0) }),
});

const attemptSchema = z.strictObject({
  task: z.string(),
  attempt: z.int().min(1),
  taskChecksum: z.string(),
  status: z.string(),
  reward: z.number().nullable(),
  rewards: z.record(z.string(), z.number()),
  images: z
    .strictObject({ agent: z.string().nullable(), verifier: z.array(z.string().nullable()) })
    .describe("Image digests: of the agent's container, and of that of the tests of each step"),
  policy: z
    .strictObject({ agent: z.boolean().nullable(), verifier: z.array(z.boolean().nullable()) })
    .describe("Whether the kernel confirmed all of the policy of that container; null without a proof"),
});

const runSchema = batchFileSchema.pick({ settings: true, tasks: true });

/** Statements of a sealed run, apart from its files. */
const predicateSchema = z.strictObject({
  brigVersion: z.string(),
  sealedAt: z.iso.datetime(),
  publicKey: z.string().describe("PEM, of the key that signed this"),
  run: runSchema,
  attempts: z.array(attemptSchema),
});

/** The signed document: an in-toto statement. */
export const statementSchema = z.strictObject({
  _type: z.literal(STATEMENT_TYPE),
  subject: z.array(subjectSchema),
  predicateType: z.literal(PREDICATE_TYPE),
  predicate: predicateSchema,
});
export type Statement = z.infer<typeof statementSchema>;
export type SealedFile = z.infer<typeof subjectSchema>;
export type SealedAttempt = z.infer<typeof attemptSchema>;
export type SealedRun = z.infer<typeof runSchema>;

const PAYLOAD_TYPE = "application/vnd.in-toto+json";

/** A DSSE envelope, as sigstore and in-toto use it. */
export const envelopeSchema = z.strictObject({
  payloadType: z.literal(PAYLOAD_TYPE),
  payload: z.base64(),
  signatures: z.array(z.strictObject({ keyid: z.string(), sig: z.base64() })).min(1),
});
export type Envelope = z.infer<typeof envelopeSchema>;

/** Signs with an Ed25519 key. */
export function signed(payload: string, privateKey: KeyObject, publicKey: KeyObject): Envelope {
  const bytes = Buffer.from(payload);
  return {
    payloadType: PAYLOAD_TYPE,
    payload: bytes.toString("base64"),
    signatures: [
      { keyid: keyId(publicKey), sig: sign(null, preAuthentication(bytes), privateKey).toString("base64") },
    ],
  };
}

export function payloadOf({ payload }: Envelope): string {
  return Buffer.from(payload, "base64").toString("utf8");
}

/** Whether this key made one of the signatures. What a signature says about its key is only a hint, and not believed. */
export function isSignedBy({ payload, signatures }: Envelope, publicKey: KeyObject): boolean {
  const bytes = preAuthentication(Buffer.from(payload, "base64"));
  return signatures.some(({ sig }) => verify(null, bytes, publicKey, Buffer.from(sig, "base64")));
}

/** "SHA256:" and the hash of the public key, as people compare it. */
export function keyId(publicKey: KeyObject): string {
  const der = publicKey.export({ type: "spki", format: "der" });
  return `SHA256:${createHash("sha256").update(der).digest("base64").replace(/=+$/, "")}`;
}

/** The bytes that DSSE signs. They include the type, so that a signature of another kind of document is not valid here. */
function preAuthentication(payload: Buffer): Buffer {
  return Buffer.concat([
    Buffer.from(`DSSEv1 ${Buffer.byteLength(PAYLOAD_TYPE)} ${PAYLOAD_TYPE} ${payload.length} `),
    payload,
  ]);
}
