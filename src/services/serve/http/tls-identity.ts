import { createHash, createPrivateKey, X509Certificate } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { hostname, networkInterfaces } from "node:os";
import { join } from "node:path";
import { createSecureContext } from "node:tls";
import { BrigError } from "../../../errors.js";
import { readTextFile } from "../../../lib/bounded-file.js";
import { systemReason } from "../../../lib/errno.js";
import { isWildcard } from "../../../lib/http/listen.js";
import {
  authorityCertificate,
  type KeyPair,
  keyFromPem,
  keyToPem,
  newKeyPair,
  serverCertificate,
} from "../../../lib/tls/certificate.js";

/** What a service proves itself with, and which clients it lets connect. All in PEM. */
export interface TlsIdentity {
  cert: string;
  key: string;
  /** Authorities, one of which has to have signed the certificate of a client. Default: clients need none. */
  ca?: string | undefined;
}

export interface TlsFiles {
  cert: string;
  key: string;
  clientAuthority?: string | undefined;
}

const MAX_PEM_BYTES = 1024 * 1024;

/** Error: `usage.invalid` for files that are missing, do not belong together, or are of a certificate that is not valid any more. */
export async function readTlsFiles({ cert, key, clientAuthority }: TlsFiles): Promise<TlsIdentity> {
  const identity = {
    cert: await readPem(cert, "the certificate"),
    key: await readPem(key, "the key"),
    ca:
      clientAuthority === undefined ? undefined : await readPem(clientAuthority, "the authority of clients"),
  };
  requireValid(identity, cert);
  return identity;
}

/** The certificates of the authorities that may sign those of clients, in PEM. Error: `usage.invalid`. */
export async function readAuthority(file: string): Promise<string> {
  const text = await readPem(file, "the authority of clients");
  try {
    new X509Certificate(text);
    return text;
  } catch (cause) {
    throw unusable(`the authority of clients ${JSON.stringify(file)} is no certificate`, cause);
  }
}

/** The certificate that clients are shown. */
export function certificateOf({ cert }: TlsIdentity): X509Certificate {
  return new X509Certificate(cert);
}

async function readPem(file: string, what: string): Promise<string> {
  const read = await readTextFile(file, MAX_PEM_BYTES);
  if (read.kind === "text" && read.text.includes("-----BEGIN ")) return read.text;
  const reason =
    read.kind === "missing" ? "does not exist" : read.kind === "text" ? "is not in PEM" : read.reason;
  throw unusable(`${what} ${JSON.stringify(file)} ${reason}`);
}

function requireValid(identity: TlsIdentity, file: string): void {
  let certificate: X509Certificate;
  try {
    certificate = certificateOf(identity);
    if (!certificate.checkPrivateKey(createPrivateKey(identity.key)))
      throw unusable(`the key is not that of the certificate ${JSON.stringify(file)}`);
    createSecureContext(identity);
  } catch (cause) {
    if (cause instanceof BrigError) throw cause;
    throw unusable(`the files for TLS are not understood: ${systemReason(cause)}`, cause);
  }
  if (Date.parse(certificate.validTo) < Date.now())
    throw unusable(`the certificate ${JSON.stringify(file)} was valid until ${certificate.validTo}`);
}

function unusable(message: string, cause?: unknown): BrigError {
  return new BrigError(message, {
    code: "usage.invalid",
    hint: "give the certificate with the chain below its authority, and its key without a passphrase, both in PEM",
    cause,
  });
}

const DAY_MS = 86_400_000;
const AUTHORITY_DAYS = 730;
/** Some clients refuse server certificates that are valid for longer than 398 days. */
const SERVER_DAYS = 397;
const ISSUER = "brig serve, an authority of this machine";

/** Of a service whose authority is its own. */
export interface SelfSigned {
  identity: TlsIdentity;
  /** The file with the authority's certificate, which clients need. */
  authorityFile: string;
  /** SHA-256 of that certificate, as browsers and openssl write it. */
  fingerprint: string;
}

/**
 * A new certificate for these hosts, signed by an authority that is made once in the directory and stays there. Error: `usage.invalid` if it
 * cannot be written there.
 */
export async function selfSigned(
  directory: string,
  hosts: readonly [string, ...string[]],
): Promise<SelfSigned> {
  const { signer, certificate, file } = await authorityIn(directory);
  const keys = await newKeyPair();
  const cert = await serverCertificate(hosts, {
    ...{ issuer: ISSUER, signer, keys },
    validMs: SERVER_DAYS * DAY_MS,
  });
  return {
    identity: { cert, key: await keyToPem(keys) },
    authorityFile: file,
    fingerprint: new X509Certificate(certificate).fingerprint256,
  };
}

/** The names and addresses by which a service that listens on this host may be asked for. */
export function hostsFor(host: string | null, others: readonly string[]): [string, ...string[]] {
  const own =
    host !== null && isWildcard(host)
      ? [
          hostname(),
          ...Object.values(networkInterfaces()).flatMap((all) =>
            (all ?? []).map(({ address }) => address.replace(/%.*$/, "")),
          ),
        ]
      : host === null
        ? []
        : [host];
  return ["localhost", ...new Set(["127.0.0.1", "::1", ...own, ...others])];
}

interface Authority {
  signer: KeyPair;
  /** In PEM. */
  certificate: string;
  file: string;
}

async function authorityIn(directory: string): Promise<Authority> {
  const file = join(directory, "authority.pem");
  const keyFile = join(directory, "authority-key.pem");
  const known = await knownAuthority(file, keyFile);
  if (known !== null) return known;
  const signer = await newKeyPair();
  const certificate = await authorityCertificate(ISSUER, signer, { validMs: AUTHORITY_DAYS * DAY_MS });
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 });
    await writeFile(keyFile, await keyToPem(signer), { mode: 0o600 });
    await writeFile(file, certificate, { mode: 0o644 });
  } catch (cause) {
    throw new BrigError(`the authority for --tls-self-signed cannot be kept: ${systemReason(cause)}`, {
      code: "usage.invalid",
      hint: "set BRIG_HOME to a directory that can be written, or give --tls-cert and --tls-key",
      cause,
    });
  }
  return { signer, certificate, file };
}

/** Null if there is none, or if it does not outlive what it would sign. */
async function knownAuthority(file: string, keyFile: string): Promise<Authority | null> {
  try {
    const certificate = await readFile(file, "utf8");
    const signer = await keyFromPem(await readFile(keyFile, "utf8"));
    const parsed = new X509Certificate(certificate);
    const isOfKey = createHash("sha256")
      .update(parsed.publicKey.export({ type: "spki", format: "der" }))
      .digest()
      .subarray(0, 20)
      .equals(signer.id);
    const isOld = Date.parse(parsed.validTo) < Date.now() + SERVER_DAYS * DAY_MS;
    return isOfKey && !isOld ? { signer, certificate, file } : null;
  } catch {
    return null;
  }
}
