import { protocolError } from "../channel/frames.js";
import { OWNER_RECORD_BYTES, OWNERS_MAX } from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type { InsideConnection } from "../egress/inside-network.js";
import { run } from "../files/file-request.js";
import { encodeAddress } from "./address.js";

/** The process that has a connection. */
interface ProcessOwner {
  channel: number;
  pid: number;
  program: string;
}

interface Question {
  query: Buffer;
  resolve(owner: ProcessOwner | null): void;
  reject(error: unknown): void;
}

/** Asks which processes have connections. All questions that come while one search goes on share the next. */
export class OwnerSearch {
  readonly #link: RunnerLink;
  #questions: Question[] = [];
  #isSearching = false;

  constructor(link: RunnerLink) {
    this.#link = link;
  }

  async find({ from, to }: Pick<InsideConnection, "from" | "to">): Promise<ProcessOwner | null> {
    const query = Buffer.concat([encodeAddress(from), encodeAddress(to)]);
    return await new Promise((resolve, reject) => {
      this.#questions.push({ query, resolve, reject });
      if (!this.#isSearching) void this.#search();
    });
  }

  async #search(): Promise<void> {
    this.#isSearching = true;
    while (this.#questions.length > 0) await this.#answer(this.#questions.splice(0, OWNERS_MAX));
    this.#isSearching = false;
  }

  async #answer(questions: readonly Question[]): Promise<void> {
    const context = { link: this.#link, cwd: "/", env: {}, onStuck: () => undefined };
    const second = Buffer.concat(questions.map(({ query }) => query));
    try {
      const { result } = await run(context, { operation: "owners", path: "", second });
      if (result.length !== questions.length * OWNER_RECORD_BYTES)
        throw protocolError("not one owner for each connection");
      for (const [i, question] of questions.entries())
        question.resolve(parseOwner(result.subarray(i * OWNER_RECORD_BYTES, (i + 1) * OWNER_RECORD_BYTES)));
    } catch (error) {
      for (const question of questions) question.reject(error);
    }
  }
}

/** The program's name is its own choice, so it may hold anything. */
function parseOwner(record: Buffer): ProcessOwner | null {
  const name = record.subarray(8);
  const end = name.indexOf(0);
  const pid = record.readUInt32LE(4);
  if (pid === 0) return null;
  const text = name.subarray(0, end < 0 ? name.length : end).toString("utf8");
  const program = text.replace(/[^\x20-\x7e]/g, "?");
  return { channel: record.readUInt32LE(0), pid, program };
}
