import { once } from "node:events";
import { createServer } from "node:net";
import { connect } from "node:tls";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { judgeFirstBytes, readClientHello } from "../../../../../src/sandbox/egress/tunnel.js";

const target = { kind: "name", name: "a.example" } as const;
const address = { kind: "address", address: "192.0.2.1" } as const;
let named: Buffer;
let nameless: Buffer;

beforeAll(async () => {
  named = await greeting("a.example");
  nameless = await greeting("");
});

describe("the first bytes of a connection", () => {
  it("pass if a real TLS greeting names the target, in whatever case", async () => {
    expect(judge(named)).toEqual({ kind: "pass", isTls: true });
    expect(judge(await greeting("A.Example"))).toEqual({ kind: "pass", isTls: true });
  });

  it("do not pass if the greeting names another host", async () => {
    expect(judge(await greeting("b.example"), { anyProtocol: true })).toEqual({
      kind: "denied",
      denial: { kind: "other-name", name: "b.example" },
    });
  });

  it("do not pass without a name, unless the target has none or a rule names the port", () => {
    expect(judge(nameless)).toEqual({ kind: "denied", denial: { kind: "no-name", isEncrypted: false } });
    expect(judge(nameless, { anyProtocol: true })).toEqual({ kind: "pass", isTls: true });
    expect(judgeFirstBytes(nameless, { target: address, anyProtocol: false, endsTls: false })).toEqual({
      kind: "pass",
      isTls: true,
    });
  });

  it("pass where TLS ends at the proxy with what browsers send in place of an encrypted name, but not with another name", () => {
    const withEch = appendExtension(named, 0xfe0d, Buffer.from([0]));
    expect(judgeFirstBytes(withEch, { target, anyProtocol: false, endsTls: true })).toEqual({
      kind: "pass",
      isTls: true,
    });
    const other = { kind: "name", name: "other.example" } as const;
    expect(judgeFirstBytes(withEch, { target: other, anyProtocol: false, endsTls: true }).kind).toBe(
      "denied",
    );
  });

  it("do not pass with an encrypted name, even beside the right one", () => {
    const withEch = appendExtension(named, 0xfe0d, Buffer.from([0]));
    expect(judge(withEch)).toEqual({ kind: "denied", denial: { kind: "no-name", isEncrypted: true } });
  });

  it("do not pass with two names", () => {
    const host = Buffer.from("b.example");
    const name = Buffer.concat([Buffer.from([0, host.length + 3, 0, 0, host.length]), host]);
    expect(judge(appendExtension(named, 0, name))).toMatchObject({ kind: "denied" });
  });

  it.each([
    ["SSH-2.0-x\r\n", "denied", "pass"],
    ["PRI * HTTP/2.0\r\n", "denied", "pass"],
    ["\0\0\0\x08\x04\xd2\x16\x2f", "denied", "pass"],
    ["GETTER", "denied", "pass"],
    ["GET key\r\n", "denied", "pass"],
    ["G", "incomplete", "incomplete"],
    ["GET ", "incomplete", "incomplete"],
    ["GET / HTTP/1.1\r\n", "http", "http"],
    ["POST http://a.example/ HTTP/1.1\r\n", "http", "http"],
    ["\x16", "incomplete", "incomplete"],
    ["\x16\x03\x01\x00\x00", "denied", "pass"],
    ["\x16\x03\x01\x00\x04\x02\0\0\0", "denied", "pass"],
  ])("%j are %s on a port of the web, %s where any protocol may be", (text, web, any) => {
    const data = Buffer.from(text, "latin1");
    expect(judge(data).kind).toBe(web);
    expect(judge(data, { anyProtocol: true }).kind).toBe(any);
  });

  it("give the same verdict however a greeting is cut into records", () => {
    const message = named.subarray(5);
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 1, max: message.length - 1 }), { maxLength: 8 }),
        (cuts) => {
          const ends = [...cuts.toSorted((a, b) => a - b), message.length];
          const records = ends.map((end, at) => {
            const part = message.subarray(at === 0 ? 0 : ends[at - 1], end);
            return Buffer.concat([Buffer.from([22, 3, 1, part.length >> 8, part.length & 255]), part]);
          });
          expect(judge(Buffer.concat(records))).toEqual({ kind: "pass", isTls: true });
        },
      ),
    );
  });

  it("need the whole greeting", () => {
    for (let length = 1; length < named.length; length += 1)
      expect(judge(named.subarray(0, length)), String(length)).toEqual({ kind: "incomplete" });
  });

  it("are never taken for another name after bytes were changed, and never crash", () => {
    fc.assert(
      fc.property(fc.nat(named.length - 1), fc.nat(255), (at, value) => {
        const changed = Buffer.from(named);
        changed[at] = value;
        const hello = readClientHello(changed);
        if (hello.kind !== "complete" || hello.serverName === null) return;
        // "a.Example" is the same name, because names of hosts do not distinguish case.
        if (hello.serverName.toLowerCase() !== "a.example") expect(judge(changed).kind).toBe("denied");
      }),
      { numRuns: 1000 },
    );
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        judge(Buffer.concat([Buffer.from([22, 3]), bytes]));
        judge(Buffer.from(bytes));
      }),
    );
  });

  it("are given up if a greeting never ends", () => {
    const header = Buffer.from([22, 3, 1, 0xff, 0xff, 1, 0, 0x7f, 0xff]);
    expect(judge(Buffer.concat([header, Buffer.alloc(70_000)]))).toMatchObject({ kind: "denied" });
  });
});

function judge(data: Buffer, { anyProtocol = false } = {}) {
  return judgeFirstBytes(data, { target, anyProtocol, endsTls: false });
}

/** What Node's own TLS sends first. */
async function greeting(servername: string): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const place = server.address();
  const port = typeof place === "object" && place !== null ? place.port : 0;
  const client = connect({ port, host: "127.0.0.1", servername });
  client.on("error", () => undefined);
  const [socket] = await once(server, "connection");
  const [data] = await once(socket, "data");
  socket.destroy();
  client.destroy();
  server.close();
  return data;
}

/** Adds an extension at the end of a greeting in one record. */
function appendExtension(hello: Buffer, type: number, content: Buffer): Buffer {
  const header = Buffer.alloc(4);
  header.writeUInt16BE(type);
  header.writeUInt16BE(content.length, 2);
  const longer = Buffer.concat([hello, header, content]);
  const added = 4 + content.length;
  longer.writeUInt16BE(longer.readUInt16BE(3) + added, 3);
  longer.writeUIntBE(longer.readUIntBE(6, 3) + added, 6, 3);
  const afterSession = 43 + 1 + (longer[43] ?? 0);
  const afterCiphers = afterSession + 2 + longer.readUInt16BE(afterSession);
  const extensions = afterCiphers + 1 + (longer[afterCiphers] ?? 0);
  longer.writeUInt16BE(longer.readUInt16BE(extensions) + added, extensions);
  return longer;
}
