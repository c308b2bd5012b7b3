import { createHash, type KeyObject, sign, verify } from "node:crypto";
import { z } from "zod";

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
