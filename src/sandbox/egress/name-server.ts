import { decode, encode, type OptAnswer, type Packet, type Question, RECURSION_DESIRED } from "dns-packet";

/** Seconds that a program may keep an answer. An address stays that of its name as long as the sandbox lives. */
const TTL_SECONDS = 60;
const HEADER_BYTES = 12;
/** An answer that says that brig knows EDNS, for programs that have said so. Answers are always shorter. */
const EDNS = {
  ...({ type: "OPT", name: ".", udpPayloadSize: 1232, flags: 0, options: [] } as const),
  ...{ extendedRcode: 0, ednsVersion: 0, flag_do: false },
} satisfies OptAnswer;
const CODES = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4 } as const;

export type NameAnswer =
  | { kind: "address"; address: string }
  | { kind: "unknown" }
  /** The name exists, but gets no address now. */
  | { kind: "unavailable" };

/**
 * Answers one DNS query; null for what is none. Only questions for the IPv4 address of a name have an answer, and
 * no other record exists. `find` gets the name in lower case, without a dot at its end.
 */
export async function answerQuery(
  data: Buffer,
  find: (name: string, asksAddress: boolean) => Promise<NameAnswer>,
): Promise<Buffer | null> {
  const query = decoded(data);
  if (query === null)
    return data.length < HEADER_BYTES || isResponse(data) ? null : failed(data, CODES.FORMERR);
  if (query.type !== "query") return null;
  const [question, ...others] = query.questions ?? [];
  if (query.opcode !== "QUERY") return failed(data, CODES.NOTIMP);
  if (question === undefined || others.length > 0 || question.class !== "IN")
    return failed(data, CODES.FORMERR);
  const asksAddress = question.type === "A";
  const found = await find(question.name.toLowerCase().replace(/\.$/, ""), asksAddress);
  // A label with a dot in it, or with bytes that are no text: no host is called that, and the answer would be to another question.
  if (!asksExactly(data, question)) return failed(data, CODES.NXDOMAIN);
  if (found.kind === "unknown") return reply(query, question, { code: CODES.NXDOMAIN });
  if (found.kind === "unavailable") return reply(query, question, { code: CODES.SERVFAIL });
  return reply(query, question, { code: CODES.NOERROR, address: asksAddress ? found.address : undefined });
}

/** Whether the name in the query is as an answer to this question would have it. */
function asksExactly(data: Buffer, question: Question): boolean {
  const TYPE_AND_CLASS_BYTES = 4;
  const name = encode({ type: "query", questions: [question] }).subarray(HEADER_BYTES, -TYPE_AND_CLASS_BYTES);
  return data.subarray(HEADER_BYTES, HEADER_BYTES + name.length).equals(name);
}

function decoded(data: Buffer): (Packet & { opcode?: string }) | null {
  try {
    return decode(data);
  } catch {
    // A program sent something else than DNS.
    return null;
  }
}

function reply(
  query: Packet,
  question: Question,
  { code, address }: { code: number; address?: string | undefined },
): Buffer {
  const answers =
    address === undefined
      ? []
      : [{ type: "A", name: question.name, ttl: TTL_SECONDS, data: address } as const];
  const wantsRecursion = (query.flags ?? 0) & RECURSION_DESIRED;
  const RECURSION_AVAILABLE = 0x80;
  return encode({
    type: "response",
    id: query.id,
    flags: wantsRecursion | RECURSION_AVAILABLE | code,
    questions: [question],
    answers,
    additionals: query.additionals?.some(({ type }) => type === "OPT") ? [EDNS] : [],
  });
}

function isResponse(data: Buffer): boolean {
  return ((data[2] ?? 0) & 0x80) !== 0;
}

/** Answers with an error, without repeating the question, which could not be read. */
function failed(data: Buffer, code: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  data.copy(header, 0, 0, 3);
  header[2] = (header[2] ?? 0) | 0x80;
  header[3] = code;
  return header;
}
