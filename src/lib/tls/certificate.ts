import { createHash, createPublicKey, randomBytes, webcrypto } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import { Integer, OctetString, Utf8String } from "asn1js";
import {
  AltName,
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  CryptoEngine,
  Extension,
  ExtKeyUsage,
  GeneralName,
} from "pkijs";

export interface KeyPair extends webcrypto.CryptoKeyPair {
  /** Id by which certificates refer to the key. */
  id: Uint8Array<ArrayBuffer>;
}

const OID = {
  commonName: "2.5.4.3",
  basicConstraints: "2.5.29.19",
  keyUsage: "2.5.29.15",
  extendedKeyUsage: "2.5.29.37",
  subjectAltName: "2.5.29.17",
  subjectKeyIdentifier: "2.5.29.14",
  authorityKeyIdentifier: "2.5.29.35",
  serverAuthentication: "1.3.6.1.5.5.7.3.1",
} as const;

/** DER of the BIT STRINGs of key usages: keyCertSign with cRLSign, and digitalSignature. */
const KEY_USAGE = { authority: Buffer.from("03020106", "hex"), server: Buffer.from("03020780", "hex") };
const DAY_MS = 86_400_000;
/** Clocks inside are those of the engine's machine, which may not agree with this one. */
const CLOCK_SKEW_MS = DAY_MS;
/** Some clients refuse server certificates that are valid for longer than 398 days. */
const VALID_MS = 90 * DAY_MS;
const COMMON_NAME_MAX_CHARS = 64;

const engine = new CryptoEngine({ name: "node", crypto: webcrypto as never });

const algorithm = { name: "ECDSA", namedCurve: "P-256" };

export async function newKeyPair(): Promise<KeyPair> {
  return await withId(await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]));
}

/** The pair whose private key `keyToPem` has written. */
export async function keyFromPem(text: string): Promise<KeyPair> {
  const der = Buffer.from(text.replaceAll(/-----[^-]+-----|\s/g, ""), "base64");
  const spki = createPublicKey(text).export({ type: "spki", format: "der" });
  const [privateKey, publicKey] = await Promise.all([
    webcrypto.subtle.importKey("pkcs8", der, algorithm, true, ["sign"]),
    webcrypto.subtle.importKey("spki", spki, algorithm, true, ["verify"]),
  ]);
  return await withId({ privateKey, publicKey });
}

async function withId(keys: webcrypto.CryptoKeyPair): Promise<KeyPair> {
  const publicKey = Buffer.from(await webcrypto.subtle.exportKey("spki", keys.publicKey));
  return { ...keys, id: new Uint8Array(createHash("sha256").update(publicKey).digest().subarray(0, 20)) };
}

export async function keyToPem({ privateKey }: KeyPair): Promise<string> {
  return pem("PRIVATE KEY", Buffer.from(await webcrypto.subtle.exportKey("pkcs8", privateKey)));
}

/** A certificate, in PEM, of an authority that signs itself. */
export async function authorityCertificate(
  name: string,
  keys: KeyPair,
  { validMs }: { validMs?: number } = {},
): Promise<string> {
  const extensions = [
    extension(OID.basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }), {
      critical: true,
    }),
    rawExtension(OID.keyUsage, KEY_USAGE.authority),
    extension(OID.subjectKeyIdentifier, { toSchema: () => new OctetString({ valueHex: keys.id }) }),
  ];
  return await sign(
    { issuer: name, subject: name, extensions },
    { publicKey: keys.publicKey, signer: keys, validMs },
  );
}

/** A server's certificate, in PEM, for a name or an address, or for several. */
export async function serverCertificate(
  host: string | readonly [string, ...string[]],
  { issuer, signer, keys, validMs }: { issuer: string; signer: KeyPair; keys: KeyPair; validMs?: number },
): Promise<string> {
  const hosts = typeof host === "string" ? [host] : host;
  const [first = ""] = hosts;
  const extensions = [
    extension(OID.basicConstraints, new BasicConstraints({ cA: false }), { critical: true }),
    rawExtension(OID.keyUsage, KEY_USAGE.server),
    extension(OID.extendedKeyUsage, new ExtKeyUsage({ keyPurposes: [OID.serverAuthentication] })),
    extension(OID.subjectAltName, new AltName({ altNames: hosts.map(alternativeName) })),
    // Python refuses certificates without it.
    extension(
      OID.authorityKeyIdentifier,
      new AuthorityKeyIdentifier({ keyIdentifier: new OctetString({ valueHex: signer.id }) }),
    ),
  ];
  // A longer name stands among the alternative names only, which all clients read.
  const subject = first.length > COMMON_NAME_MAX_CHARS ? "brig" : first;
  return await sign({ issuer, subject, extensions }, { publicKey: keys.publicKey, signer, validMs });
}

async function sign(
  { issuer, subject, extensions }: { issuer: string; subject: string; extensions: Extension[] },
  {
    publicKey,
    signer,
    validMs = VALID_MS,
  }: { publicKey: webcrypto.CryptoKey; signer: KeyPair; validMs?: number | undefined },
): Promise<string> {
  const certificate = new Certificate();
  certificate.version = 2;
  certificate.serialNumber = new Integer({ valueHex: serialNumber() });
  certificate.issuer.typesAndValues.push(commonName(issuer));
  certificate.subject.typesAndValues.push(commonName(subject));
  certificate.notBefore.value = new Date(Date.now() - CLOCK_SKEW_MS);
  certificate.notAfter.value = new Date(Date.now() + validMs);
  certificate.extensions = extensions;
  await certificate.subjectPublicKeyInfo.importKey(publicKey, engine);
  await certificate.sign(signer.privateKey, "SHA-256", engine);
  return pem("CERTIFICATE", Buffer.from(certificate.toSchema(true).toBER(false)));
}

/** Positive, without leading zeros, and never the same twice: clients remember issuer and serial number. */
function serialNumber(): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(randomBytes(16));
  bytes[0] = ((bytes[0] ?? 0) & 0x3f) | 0x40;
  return bytes;
}

function alternativeName(host: string): GeneralName {
  if (isIP(host) === 0) return new GeneralName({ type: 2, value: host });
  return new GeneralName({ type: 7, value: new OctetString({ valueHex: addressBytes(host) }) });
}

function commonName(value: string): AttributeTypeAndValue {
  return new AttributeTypeAndValue({ type: OID.commonName, value: new Utf8String({ value }) });
}

function extension(
  extnID: string,
  value: { toSchema(): { toBER(sizeOnly?: boolean): ArrayBuffer } },
  { critical = false } = {},
): Extension {
  return new Extension({ extnID, critical, extnValue: value.toSchema().toBER(false) });
}

function rawExtension(extnID: string, der: Buffer): Extension {
  return new Extension({ extnID, critical: true, extnValue: new Uint8Array(der).buffer });
}

function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** The 4 or 16 bytes of an address in a valid spelling. */
function addressBytes(address: string): Uint8Array<ArrayBuffer> {
  if (isIPv4(address)) return Uint8Array.from(address.split("."), Number);
  // A URL writes the groups in hexadecimal, also those that were written as an IPv4 address.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const groups = (text: string) =>
    text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = groups(tail ?? "");
  const all = [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after];
  return Uint8Array.from(all.flatMap((group) => [group >> 8, group & 255]));
}
