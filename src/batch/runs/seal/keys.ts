import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { open } from "node:fs/promises";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { errnoOf } from "../../../lib/errno.js";

const MAX_KEY_BYTES = 64 * 1024;

export interface SealKey {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

/** Makes a key that only its owner can read, and `FILE.pub` beside it. Error: `usage.invalid` if one of them exists. */
export async function newKey(file: string): Promise<SealKey> {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  await writeNew(file, { text: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), mode: 0o600 });
  await writeNew(`${file}.pub`, { text: publicPem(publicKey), mode: 0o644 });
  return { privateKey, publicKey };
}

export function publicPem(publicKey: KeyObject): string {
  return publicKey.export({ type: "spki", format: "pem" }).toString();
}

/** Error: `usage.invalid` for anything but a private Ed25519 key. */
export async function readPrivateKey(file: string): Promise<SealKey> {
  const privateKey = parsed(await keyText(file), createPrivateKey);
  if (privateKey?.asymmetricKeyType !== "ed25519") throw noKey(file, "a private Ed25519 key in PEM");
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

/** The public key, also if the file has the private one. Error: `usage.invalid` for anything but an Ed25519 key. */
export async function readPublicKey(file: string): Promise<KeyObject> {
  const publicKey = parsePublicKey(await keyText(file));
  if (publicKey === null) throw noKey(file, "an Ed25519 key in PEM");
  return publicKey;
}

/** Null for anything but an Ed25519 key. */
export function parsePublicKey(pem: string): KeyObject | null {
  const key = parsed(pem, createPublicKey);
  return key?.asymmetricKeyType === "ed25519" ? key : null;
}

function parsed(pem: string, parse: (pem: string) => KeyObject): KeyObject | null {
  try {
    return parse(pem);
  } catch {
    return null;
  }
}

async function keyText(file: string): Promise<string> {
  const read = await readTextFile(file, MAX_KEY_BYTES);
  if (read.kind === "text") return read.text;
  const reason = read.kind === "missing" ? "does not exist" : read.reason;
  throw new BrigError(`the key ${JSON.stringify(file)} ${reason}`, { code: "usage.invalid", hint: HINT });
}

const HINT = "make a key with brig batch seal RUN --new-key FILE";

function noKey(file: string, what: string): BrigError {
  return new BrigError(`${JSON.stringify(file)} is not ${what}`, { code: "usage.invalid", hint: HINT });
}

async function writeNew(path: string, { text, mode }: { text: string; mode: number }): Promise<void> {
  try {
    const file = await open(path, "wx", mode);
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
  } catch (cause) {
    const errno = errnoOf(cause);
    throw new BrigError(
      errno === "EEXIST"
        ? `${JSON.stringify(path)} exists already, and a key is never replaced`
        : `the key cannot be written to ${JSON.stringify(path)}: ${errno}`,
      { code: "usage.invalid", hint: "name another file", cause },
    );
  }
}
