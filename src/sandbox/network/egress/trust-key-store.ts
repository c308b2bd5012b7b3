import { createHash } from "node:crypto";

/** JKS: the one form that every version of Java reads, whatever type of key store it expects. */
const MAGIC = 0xfeedfeed;
const VERSION = 2;
const ENTRY = { privateKey: 1, certificate: 2 } as const;
const DIGEST_BYTES = 20;
/** The password that everybody uses for certificates. Java itself needs none to read them. */
const PASSWORD = "changeit";
/** The most entries of each kind in a store that is read: certificates, parts of a chain, bags. Stores of whole distributions have 150. */
const MAX_ENTRIES = 2000;

/** A file of these certificates, in DER, that JVMs read as `javax.net.ssl.trustStore`. */
export function writeKeyStore(certificates: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(12);
  head.writeUInt32BE(MAGIC, 0);
  head.writeUInt32BE(VERSION, 4);
  head.writeUInt32BE(certificates.length, 8);
  const madeAt = Buffer.alloc(8);
  madeAt.writeBigInt64BE(BigInt(Date.now()));
  const entries = certificates.flatMap((certificate, at) => [
    number32(ENTRY.certificate),
    text(`authority-${at}`),
    madeAt,
    text("X.509"),
    number32(certificate.length),
    certificate,
  ]);
  const content = Buffer.concat([head, ...entries]);
  return Buffer.concat([content, digestOf(content)]);
}

/**
 * The certificates, in DER, of a key store of Java: JKS, or PKCS #12 without a password, as newer versions of Java bring it.
 * Null for anything else, and for one with more than 2000 entries. Nothing of it is verified, since whoever wrote the file could have written its digest as well.
 */
export function readKeyStore(file: Buffer): Buffer[] | null {
  try {
    if (file.length > 4 && file.readUInt32BE(0) === MAGIC) return certificatesOfJks(file);
    return certificatesOfPkcs12(file);
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function certificatesOfJks(file: Buffer): Buffer[] | null {
  const bytes = new BigEndianBytes(file.subarray(4, file.length - DIGEST_BYTES));
  const version = bytes.number32();
  if (version !== 1 && version !== VERSION) return null;
  const certificates: Buffer[] = [];
  const takeCertificate = () => {
    if (version === VERSION) bytes.take(bytes.number16());
    return bytes.take(bytes.number32());
  };
  for (let left = notTooMany(bytes.number32()); left > 0; left--) {
    const tag = bytes.number32();
    bytes.take(bytes.number16());
    bytes.take(8);
    if (tag === ENTRY.certificate) certificates.push(takeCertificate());
    else if (tag === ENTRY.privateKey) {
      bytes.take(bytes.number32());
      for (let chain = notTooMany(bytes.number32()); chain > 0; chain--) takeCertificate();
    } else return null;
  }
  return certificates;
}

const DER = { octets: 0x04, object: 0x06, sequence: 0x30, first: 0xa0 } as const;
const OID = {
  data: Buffer.from("2a864886f70d010701", "hex"),
  certificateBag: Buffer.from("2a864886f70d010c0a0103", "hex"),
  x509: Buffer.from("2a864886f70d01091601", "hex"),
};

/** Reads only unencrypted data: a version, then parts of data, each with bags, some of which have a certificate. */
function certificatesOfPkcs12(file: Buffer): Buffer[] | null {
  const [, content] = partsOf(within(file, DER.sequence));
  if (content === undefined) return null;
  const parts = partsOf(within(dataOf(content), DER.sequence));
  const bags = parts.flatMap((part) => partsOf(within(dataOf(part), DER.sequence)));
  notTooMany(bags.length);
  return bags.flatMap((bag) => certificateOf(bag) ?? []);
}

function certificateOf(bag: Buffer): Buffer | null {
  const [kind, value] = partsOf(within(bag, DER.sequence));
  if (kind === undefined || value === undefined) return null;
  if (!within(kind, DER.object).equals(OID.certificateBag)) return null;
  const [form, certificate] = partsOf(within(within(value, DER.first), DER.sequence));
  if (form === undefined || certificate === undefined) return null;
  if (!within(form, DER.object).equals(OID.x509)) return null;
  return within(within(certificate, DER.first), DER.octets);
}

function dataOf(contentInfo: Buffer): Buffer {
  const [kind, content] = partsOf(within(contentInfo, DER.sequence));
  if (kind === undefined || content === undefined || !within(kind, DER.object).equals(OID.data))
    throw new RangeError("encrypted, or not a content of PKCS #7");
  return within(within(content, DER.first), DER.octets);
}

/** The content of an element of DER. */
function within(element: Buffer, tag: number): Buffer {
  if (element[0] !== tag) throw new RangeError("another element of DER");
  const { start, end } = lengthAt(element);
  return element.subarray(start, end);
}

/** The elements that follow each other in DER, each with its tag and length. */
function partsOf(bytes: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const { end } = lengthAt(rest);
    notTooMany(parts.push(rest.subarray(0, end)));
    rest = rest.subarray(end);
  }
  return parts;
}

function lengthAt(element: Buffer): { start: number; end: number } {
  const first = element.readUInt8(1);
  const lengthBytes = first < 0x80 ? 0 : first - 0x80;
  if (first === 0x80 || lengthBytes > 4) throw new RangeError("a length that DER does not have");
  const start = 2 + lengthBytes;
  const end = start + (lengthBytes === 0 ? first : element.readUIntBE(2, lengthBytes));
  if (end > element.length) throw new RangeError("an element of DER that is cut off");
  return { start, end };
}

function notTooMany(entries: number): number {
  if (entries > MAX_ENTRIES) throw new RangeError("too many entries of a key store");
  return entries;
}

class BigEndianBytes {
  #rest: Buffer;

  constructor(bytes: Buffer) {
    this.#rest = bytes;
  }

  number16(): number {
    return this.take(2).readUInt16BE(0);
  }

  number32(): number {
    return this.take(4).readUInt32BE(0);
  }

  take(length: number): Buffer {
    if (length > this.#rest.length) throw new RangeError("a key store that is cut off");
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }
}

function number32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function text(ascii: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(ascii.length);
  return Buffer.concat([length, Buffer.from(ascii, "latin1")]);
}

function digestOf(content: Buffer): Buffer {
  return createHash("sha1")
    .update(Buffer.from(PASSWORD, "utf16le").swap16())
    .update("Mighty Aphrodite")
    .update(content)
    .digest();
}
