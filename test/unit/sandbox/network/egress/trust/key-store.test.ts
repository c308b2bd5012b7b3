import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readKeyStore, writeKeyStore } from "../../../../../../src/sandbox/network/egress/trust-key-store.js";

const certificates = [Buffer.from("one"), Buffer.alloc(70_000, 2), Buffer.alloc(0)];

describe("a key store of Java", () => {
  it("has what was written, under the digest that Java verifies with the usual password", () => {
    const store = writeKeyStore(certificates);
    expect(readKeyStore(store)).toEqual(certificates);
    const digest = createHash("sha1")
      .update("\0c\0h\0a\0n\0g\0e\0i\0t")
      .update("Mighty Aphrodite")
      .update(store.subarray(0, -20))
      .digest();
    expect(store.subarray(-20)).toEqual(digest);
  });

  it("of the first version, and one with a private key, gives its certificates", () => {
    const first = Buffer.concat([
      hex("feedfeed 00000001 00000001"),
      certificateEntry({ version: 1 }),
      Buffer.alloc(20),
    ]);
    expect(readKeyStore(first)).toEqual([Buffer.from("cert")]);
    const key = Buffer.concat([
      hex("00000001 0001 61 0000000000000000 00000003 aabbcc 00000001 0005"),
      Buffer.from("X.509"),
      hex("00000001 ff"),
    ]);
    const mixed = Buffer.concat([
      hex("feedfeed 00000002 00000002"),
      key,
      certificateEntry({ version: 2 }),
      Buffer.alloc(20),
    ]);
    expect(readKeyStore(mixed)).toEqual([Buffer.from("cert")]);
  });

  it("in PKCS #12 without a password gives its certificates, and no other bag", () => {
    const store = pkcs12([
      certificateBag("one"),
      element(0x30, objectId("2a864886f70d010c0a0102")),
      certificateBag("two"),
    ]);
    expect(readKeyStore(store)).toEqual([Buffer.from("one"), Buffer.from("two")]);
  });

  it.each([
    ["empty", Buffer.alloc(0)],
    ["of another kind", hex("cececece 00000002 00000000")],
    ["encrypted", pkcs12([], "2a864886f70d010706")],
    ["cut off", writeKeyStore(certificates).subarray(0, -100)],
    ["with a number of entries that it does not have", hex(`feedfeed 00000002 ffffffff ${"00".repeat(40)}`)],
    ["with more entries than any", writeKeyStore(new Array(2001).fill(Buffer.from("a")))],
    ["with more bags than any", pkcs12(new Array(2001).fill(certificateBag("a")))],
    ["with a length beyond its end", hex("30 84 ffffffff 00")],
    ["with a length without an end", hex("30 80 0000")],
  ])("that is %s is none", (_, file) => {
    expect(readKeyStore(file)).toBeNull();
  });

  it("with any bytes changed is read or refused, and never fails", () => {
    const stores = [writeKeyStore([Buffer.from("one")]), pkcs12([certificateBag("one")])];
    fc.assert(
      fc.property(
        fc.constantFrom(...stores),
        fc.nat(),
        fc.uint8Array({ maxLength: 4 }),
        (store, at, bytes) => {
          const changed = Buffer.from(store);
          changed.set(bytes, Math.min(at % store.length, store.length - bytes.length));
          const read = readKeyStore(changed);
          expect(read === null || Array.isArray(read)).toBe(true);
        },
      ),
    );
  });
});

function hex(text: string): Buffer {
  return Buffer.from(text.replaceAll(" ", ""), "hex");
}

function certificateEntry({ version }: { version: 1 | 2 }): Buffer {
  const type = version === 1 ? Buffer.alloc(0) : Buffer.concat([hex("0005"), Buffer.from("X.509")]);
  return Buffer.concat([
    hex("00000002 0001 61 0000000000000000"),
    type,
    hex("00000004"),
    Buffer.from("cert"),
  ]);
}

function element(tag: number, ...parts: Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(content.length);
  const head = content.length < 0x80 ? [tag, content.length] : [tag, 0x84, ...length];
  return Buffer.concat([Buffer.from(head), content]);
}

function objectId(text: string): Buffer {
  return element(0x06, hex(text));
}

function certificateBag(certificate: string): Buffer {
  const value = element(
    0x30,
    objectId("2a864886f70d01091601"),
    element(0xa0, element(0x04, Buffer.from(certificate))),
  );
  return element(0x30, objectId("2a864886f70d010c0a0103"), element(0xa0, value));
}

function pkcs12(bags: Buffer[], kind = "2a864886f70d010701"): Buffer {
  const part = (content: Buffer, of: string) =>
    element(0x30, objectId(of), element(0xa0, element(0x04, content)));
  const safe = element(0x30, part(element(0x30, ...bags), kind));
  return element(0x30, element(0x02, hex("03")), part(safe, "2a864886f70d010701"));
}
