import { createSocket } from "node:dgram";
import { once } from "node:events";
import { Duplex } from "node:stream";
import { type Answer, decode, encode } from "dns-packet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NAME_SERVER } from "../../../../../src/sandbox/egress/addresses.js";
import { answerQuery } from "../../../../../src/sandbox/egress/name-server.js";
import { answerStream } from "../../../../../src/sandbox/egress/open-egress.js";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../../support/egress-place.js";

describe("names inside a sandbox", () => {
  it("stand for addresses of its own if a rule allows them, and connections there reach the host", async () => {
    await using echo = await tcpServer((socket) => socket.pipe(socket));
    await using place = await egressPlace({ hosts: [`*.db.example:${echo.port}`, "127.0.0.1"] });
    const first = await lookUp(place, "a.db.example");
    expect(first).toEqual({ code: "NOERROR", addresses: ["127.84.0.1"] });
    expect(await lookUp(place, "B.db.example")).toEqual({ code: "NOERROR", addresses: ["127.84.0.2"] });
    expect(await lookUp(place, "A.DB.example")).toEqual(first);
    const port = place.network.portOf({ address: "127.84.0.1", port: echo.port });
    const { socket, received, ended } = await dialTo(port);
    socket.end("raw bytes");
    expect(await ended).toBe("end");
    expect(received()).toBe("raw bytes");
    expect(place.lookups).toEqual(["a.db.example"]);
    await eventually(() =>
      expect(place.attempts).toMatchObject([
        { way: "direct", host: "a.db.example", port: echo.port, outcome: { kind: "allowed" } },
      ]),
    );
  });

  it("do not exist if no rule allows them, are never looked up, and are recorded", async () => {
    await using place = await egressPlace({ hosts: ["a.example"] });
    for (const name of ["b.example", "secret-data.attacker.example", "host.internal", "127.0.0.1", "x y.a"])
      expect(await lookUp(place, name), name).toMatchObject({ code: "NXDOMAIN", addresses: [] });
    expect(place.lookups).toEqual([]);
    expect(place.attempts[0]).toMatchObject({
      ...{ way: "name", host: "b.example", port: null },
      outcome: { kind: "denied", denial: { kind: "no-rule" } },
    });
  });

  it("exist without an IPv6 address and without other records", async () => {
    await using place = await egressPlace({ hosts: ["a.example"] });
    for (const type of ["AAAA", "MX", "TXT"] as const)
      expect(await lookUp(place, "a.example", type)).toEqual({ code: "NOERROR", addresses: [] });
    expect(place.attempts).toEqual([]);
  });

  it("are answered without delay whatever is asked of them: services, certificates, types of tomorrow", async () => {
    for (const type of [12, 28, 33, 44, 64, 65, 255, 257, 65_281]) {
      const asked = Buffer.from(addressQuery);
      asked.writeUInt16BE(type, asked.length - 4);
      const answer = (await answerQuery(asked, found)) ?? Buffer.alloc(0);
      expect(codeOf(answer), `type ${type}`).toBe("NOERROR");
      expect(answer.subarray(12), `type ${type}`).toEqual(asked.subarray(12));
    }
  });

  it("have the ports of the web, and those that rules name, also of later rules", async () => {
    await using place = await egressPlace({ hosts: ["a.example"] });
    await lookUp(place, "a.example");
    const listensOn = (port: number) => place.network.listensOn({ address: "127.84.0.1", port });
    expect([80, 443, 22].map(listensOn)).toEqual([true, true, false]);
    place.egress.setHosts(["a.example:22"]);
    await lookUp(place, "a.example");
    expect(listensOn(22)).toBe(true);
    const web = await dialTo(place.network.portOf({ address: "127.84.0.1", port: 80 }));
    expect(await web.ended).toBe("reset");
  });

  it("must be those of the connection's own bytes", async () => {
    await using place = await egressPlace({ hosts: ["a.example:80", "127.0.0.1"], resolve: async () => [] });
    await lookUp(place, "a.example");
    const { ended } = await dialTo(place.network.portOf({ address: "127.84.0.1", port: 80 }));
    expect(await ended).toBe("reset");
    expect(place.attempts).toMatchObject([{ outcome: { kind: "failed", errno: "ENOTFOUND" } }]);
  });

  it("are limited in number", async () => {
    await using place = await egressPlace({ hosts: ["*.a.example"], limits: { maxNames: 2 } });
    const codes = [];
    for (const name of ["a", "b", "c", "a"]) codes.push((await lookUp(place, `${name}.a.example`)).code);
    expect(codes).toEqual(["NOERROR", "NOERROR", "SERVFAIL", "NOERROR"]);
  });
});

const found = async () => ({ kind: "address", address: "127.84.0.1" }) as const;
const addressQuery = encode({
  ...({ type: "query", id: 7, flags: 256 } as const),
  questions: [{ type: "A", name: "a.example" }],
});

describe("the name server", () => {
  const query = addressQuery;

  it("answers over TCP as well, one query after the other", async () => {
    await using place = await egressPlace({ hosts: ["*.example"] });
    const { socket, received, ended } = await dialTo(place.network.portOf(NAME_SERVER));
    const asked = [ask("a.example"), ask("b.denied"), ask("b.example")].map(framed);
    const bytes = Buffer.concat(asked);
    socket.write(bytes.subarray(0, 5));
    await new Promise((resolve) => setTimeout(resolve, 20));
    socket.end(bytes.subarray(5));
    expect(await ended).toBe("end");
    const answers = unframed(Buffer.from(received(), "latin1"));
    expect(answers.map(codeOf)).toEqual(["NOERROR", "NXDOMAIN", "NOERROR"]);
    expect(place.attempts).toMatchObject([{ way: "name", host: "b.denied", owner: { program: "curl" } }]);
    const garbage = await dialTo(place.network.portOf(NAME_SERVER));
    garbage.socket.write(framed(Buffer.from("no DNS")));
    expect(await garbage.ended).toBe("reset");
  });

  it("reads no further queries of a program that takes no answers", async () => {
    const taken: number[] = [];
    const stream = new Duplex({ read: () => undefined, write: () => undefined });
    const answer = async (data: Buffer) => {
      taken.push(data.length);
      return data;
    };
    void answerStream(stream, answer, { timeoutMs: 60_000 });
    for (let count = 0; count < 100; count += 1) stream.push(framed(query));
    await eventually(() => expect(taken.length).toBeGreaterThan(0));
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(taken).toHaveLength(1);
    stream.destroy();
  });

  it("knows EDNS if the program does", async () => {
    const options = { type: "OPT", name: ".", udpPayloadSize: 4096, flags: 0, options: [] } as const;
    const asked = encode({ ...decode(query), additionals: [options as unknown as Answer] });
    const answer = decode((await answerQuery(asked, found)) ?? Buffer.alloc(0));
    expect(answer.additionals).toMatchObject([{ type: "OPT", udpPayloadSize: 1232 }]);
    expect(decode((await answerQuery(query, found)) ?? Buffer.alloc(0)).additionals).toEqual([]);
  });

  it("answers with the id and the question as they were asked", async () => {
    const mixed = encode({ type: "query", id: 9, questions: [{ type: "A", name: "A.eXample" }] });
    const answer = decode((await answerQuery(mixed, found)) ?? Buffer.alloc(0));
    expect(answer).toMatchObject({ id: 9, type: "response", questions: [{ name: "A.eXample" }] });
  });

  it("says that it does not understand two questions, other classes and other requests", async () => {
    const twice = [
      { type: "A", name: "a.example" },
      { type: "A", name: "b.example" },
    ] as const;
    expect(codeOf(await answerQuery(encode({ type: "query", questions: [...twice] }), found))).toBe(
      "FORMERR",
    );
    const chaos = encode({ type: "query", questions: [{ type: "TXT", class: "CH", name: "version.bind" }] });
    expect(codeOf(await answerQuery(chaos, found))).toBe("FORMERR");
    const update = Buffer.from(query);
    update[2] = 5 << 3;
    expect(codeOf(await answerQuery(update, found))).toBe("NOTIMP");
  });

  it("answers no answers, so that nobody can make it talk to itself", async () => {
    const answer = await answerQuery(query, found);
    expect(answer).not.toBeNull();
    expect(await answerQuery(answer ?? query, found)).toBeNull();
  });

  it("survives any bytes, with an answer no longer than a few times the query", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 600 }), fc.boolean(), async (bytes, isHeaded) => {
        const data = isHeaded ? Buffer.concat([query.subarray(0, 12), bytes]) : Buffer.from(bytes);
        const answer = await answerQuery(data, found);
        expect(answer?.length ?? 0).toBeLessThan(data.length * 2 + 100);
      }),
      { numRuns: 500 },
    );
  });
});

function ask(name: string): Buffer {
  return encode({ type: "query", id: 1, questions: [{ type: "A", name }] });
}

function framed(data: Buffer): Buffer {
  const head = Buffer.alloc(2);
  head.writeUInt16BE(data.length);
  return Buffer.concat([head, data]);
}

function unframed(data: Buffer): Buffer[] {
  if (data.length < 2) return [];
  const end = 2 + data.readUInt16BE();
  return [data.subarray(2, end), ...unframed(data.subarray(end))];
}

async function lookUp(
  { network }: Awaited<ReturnType<typeof egressPlace>>,
  name: string,
  type: "A" | "AAAA" | "MX" | "TXT" = "A",
) {
  const socket = createSocket("udp4");
  const query = encode({ type: "query", id: 1, questions: [{ type, name }] });
  socket.send(query, network.datagramPortOf(NAME_SERVER), "127.0.0.1");
  const [data] = await once(socket, "message");
  socket.close();
  const { answers = [] } = decode(data);
  return { code: codeOf(data), addresses: answers.map((one) => ("data" in one ? one.data : null)) };
}

function codeOf(data: Buffer | null): string {
  const packet = decode(data ?? Buffer.alloc(0));
  return "rcode" in packet ? String(packet.rcode) : "";
}
