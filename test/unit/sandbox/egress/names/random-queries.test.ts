import { type Answer, decode, encode } from "dns-packet";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { answerQuery, type NameAnswer } from "../../../../../src/sandbox/egress/name-server.js";
import { nearly, runs } from "../../../../support/fuzz.js";

const EDNS = { type: "OPT", name: ".", udpPayloadSize: 4096, flags: 0, options: [] } as const;
const asking = (type: "A" | "AAAA" | "SRV", name: string) =>
  encode({ type: "query", id: 7, flags: 0x100, questions: [{ type, name }] });

/** Asks for a name of one label. */
function labelled(label: Buffer): Buffer {
  const header = asking("A", "a").subarray(0, 12);
  return Buffer.concat([header, Buffer.from([label.length]), label, Buffer.from([0, 0, 1, 0, 1])]);
}

const good = [
  asking("A", "a.example"),
  asking("A", "A.eXample."),
  asking("A", `${"x".repeat(63)}.${"y".repeat(63)}.${"z".repeat(63)}.example`),
  asking("AAAA", "b.example"),
  asking("SRV", "_http._tcp.a.example"),
  encode({ ...decode(asking("A", "a.example")), additionals: [EDNS as unknown as Answer] }),
  // A name that points to itself, and one that points to the one before it.
  Buffer.concat([asking("A", "a").subarray(0, 12), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
  Buffer.concat([asking("A", "a").subarray(0, 15), Buffer.from([0xc0, 12, 0, 1, 0, 1])]),
];

/** What was found to be wrong once, and is tried each time. */
const found: [Buffer][] = [
  // Labels that are no text, which is longer in an answer, and one with a dot in it.
  [labelled(Buffer.alloc(63, 0xff))],
  [labelled(Buffer.from("a.example"))],
  // An option whose length goes beyond the end of the packet.
  [Buffer.concat([good[5]!.subarray(0, -2), Buffer.from([0xff, 0xff])])],
  [Buffer.alloc(12)],
  [Buffer.alloc(65_535, 0xc0)],
];

describe("queries of nearly right bytes", () => {
  it("have an answer to the same question or none, and no address but that of the name that was asked for", async () => {
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(nearly(good), async (query) => {
        const asked: string[] = [];
        const find = async (name: string): Promise<NameAnswer> => {
          asked.push(name);
          return name === "a.example" ? { kind: "address", address: "127.84.0.1" } : { kind: "unknown" };
        };
        const answer = await answerQuery(query, find);
        expect(asked.length).toBeLessThan(2);
        for (const name of asked) expect(name).toBe(name.toLowerCase());
        if (answer === null) return;
        expect(answer.length).toBeLessThan(query.length * 2 + 100);
        const packet = decode(answer);
        expect(packet).toMatchObject({ type: "response", id: query.readUInt16BE(0) });
        const addresses = (packet.answers ?? []).map((one) => ("data" in one ? one.data : null));
        if (addresses.length > 0) {
          answered++;
          expect({ addresses, asked }).toEqual({ addresses: ["127.84.0.1"], asked: ["a.example"] });
          expect(packet.questions?.[0]?.name.toLowerCase().replace(/\.$/, "")).toBe("a.example");
        }
      }),
      { numRuns: runs({ short: 500, deep: 50_000 }), examples: found },
    );
    expect(answered).toBeGreaterThan(0);
  });
});
