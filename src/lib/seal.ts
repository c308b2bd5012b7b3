import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";

const CIPHER = "aes-256-gcm";
export const SEAL_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A text that only those can read who have the key. */
export function seal(text: string, key: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce);
  const sealed = Buffer.concat([cipher.update(text, "utf8"), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]).toString("base64");
}

/** Null if it was sealed with another key, or changed since. */
export function unseal(sealed: string, key: Buffer): string | null {
  const bytes = Buffer.from(sealed, "base64");
  const ends = NONCE_BYTES + TAG_BYTES;
  if (bytes.length < ends) return null;
  const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(bytes.subarray(NONCE_BYTES, ends));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(ends)), decipher.final()]).toString();
  } catch {
    return null;
  }
}
