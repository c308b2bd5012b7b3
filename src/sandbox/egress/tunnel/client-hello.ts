export type ClientHello =
  | { kind: "incomplete" }
  | { kind: "malformed" }
  | { kind: "complete"; serverName: string | null; isNameEncrypted: boolean };

const RECORD_HEADER = 5;
const MESSAGE_HEADER = 4;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const ENCRYPTED_CLIENT_HELLO = 0xfe0d;
/** Limit for one message: greetings with keys of post-quantum algorithms have 2 KB. */
export const CLIENT_HELLO_MAX_BYTES = 32_768;

/** Reads the name of the server from the first bytes of a TLS connection (RFC 8446, RFC 6066). */
export function readClientHello(data: Buffer): ClientHello {
  const greeting = joinRecords(data);
  if (greeting === null) return { kind: "malformed" };
  if (greeting.length > 0 && greeting[0] !== CLIENT_HELLO) return { kind: "malformed" };
  if (greeting.length < MESSAGE_HEADER) return { kind: "incomplete" };
  const length = greeting.readUIntBE(1, 3);
  if (length > CLIENT_HELLO_MAX_BYTES) return { kind: "malformed" };
  if (greeting.length < MESSAGE_HEADER + length) return { kind: "incomplete" };
  try {
    return readBody(new Fields(greeting.subarray(MESSAGE_HEADER, MESSAGE_HEADER + length)));
  } catch (error) {
    if (error instanceof RangeError) return { kind: "malformed" };
    throw error;
  }
}

/** A message may be cut into several records. */
function joinRecords(data: Buffer): Buffer | null {
  const parts: Buffer[] = [];
  let at = 0;
  while (data.length - at >= RECORD_HEADER) {
    const length = data.readUInt16BE(at + 3);
    if (data[at] !== HANDSHAKE || data[at + 1] !== 3 || length === 0) return null;
    parts.push(data.subarray(at + RECORD_HEADER, at + RECORD_HEADER + length));
    at += RECORD_HEADER + length;
  }
  return Buffer.concat(parts);
}

function readBody(hello: Fields): ClientHello {
  hello.skip(2 + 32);
  hello.field(1);
  hello.field(2);
  hello.field(1);
  const none = { kind: "complete", serverName: null, isNameEncrypted: false } as const;
  if (hello.isAtEnd) return none;
  const extensions = hello.field(2);
  let serverName: string | null = null;
  let isNameEncrypted = false;
  while (!extensions.isAtEnd) {
    const type = extensions.number(2);
    const content = extensions.field(2);
    if (type === ENCRYPTED_CLIENT_HELLO) isNameEncrypted = true;
    if (type !== SERVER_NAME) continue;
    // Two names: the server may take another one than we do.
    if (serverName !== null) return { kind: "malformed" };
    const names = content.field(2);
    if (names.number(1) !== 0) return { kind: "malformed" };
    serverName = names.field(2).text();
    if (!names.isAtEnd || !content.isAtEnd) return { kind: "malformed" };
  }
  return hello.isAtEnd ? { kind: "complete", serverName, isNameEncrypted } : { kind: "malformed" };
}

/** Reads numbers, and fields that begin with their length. Throws a RangeError beyond the end. */
class Fields {
  readonly #data: Buffer;
  #at = 0;

  constructor(data: Buffer) {
    this.#data = data;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#data.length;
  }

  skip(bytes: number): void {
    if (this.#at + bytes > this.#data.length) throw new RangeError("beyond the end");
    this.#at += bytes;
  }

  number(bytes: number): number {
    this.skip(bytes);
    return this.#data.readUIntBE(this.#at - bytes, bytes);
  }

  field(lengthBytes: number): Fields {
    const length = this.number(lengthBytes);
    this.skip(length);
    return new Fields(this.#data.subarray(this.#at - length, this.#at));
  }

  text(): string {
    return this.#data.toString("latin1");
  }
}
