import type { SessionUpdate } from "@agentclientprotocol/sdk";

/** If more updates or characters than this wait, the client has stopped reading. */
const MAX_WAITING = 10_000;
const MAX_WAITING_CHARS = 64 * 1024 * 1024;
const MAX_MERGED_CHARS = 256 * 1024;

/**
 * Sends updates in order, each when the client has room for it. Waiting pieces of the same message are
 * joined. If too much waits, everything that waits is dropped and `onStuck` is called, once.
 */
export class UpdateQueue {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  readonly #onStuck: () => void;
  #waiting: SessionUpdate[] = [];
  #waitingChars = 0;
  #sending: Promise<void> | null = null;
  #isStuck = false;

  constructor(send: (update: SessionUpdate) => Promise<void>, { onStuck }: { onStuck: () => void }) {
    this.#send = send;
    this.#onStuck = onStuck;
  }

  push(...updates: readonly SessionUpdate[]): void {
    if (this.#isStuck) return;
    for (const update of updates) this.#add(update);
    // Updates that are pushed while nothing is being sent, such as an earlier conversation, say nothing about the
    // client.
    const isFull = this.#waiting.length > MAX_WAITING || this.#waitingChars > MAX_WAITING_CHARS;
    if (this.#sending !== null && isFull) {
      this.#isStuck = true;
      this.#waiting = [];
      this.#onStuck();
    }
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = null;
    });
  }

  /** Resolves when nothing waits to be sent. */
  async drained(): Promise<void> {
    while (this.#sending !== null) await this.#sending;
  }

  #add(update: SessionUpdate): void {
    if (this.#sending !== null) this.#waitingChars += JSON.stringify(update).length;
    const last = this.#waiting.at(-1);
    const merged = last === undefined ? null : mergedChunks(last, update);
    if (merged === null) this.#waiting.push(update);
    else this.#waiting[this.#waiting.length - 1] = merged;
  }

  async #sendAll(): Promise<void> {
    for (;;) {
      const waiting = this.#waiting;
      this.#waiting = [];
      this.#waitingChars = 0;
      if (waiting.length === 0) return;
      for (const update of waiting) await this.#send(update);
    }
  }
}

function mergedChunks(first: SessionUpdate, second: SessionUpdate): SessionUpdate | null {
  if (!isText(first) || !isText(second) || first.sessionUpdate !== second.sessionUpdate) return null;
  const text = first.content.text + second.content.text;
  return text.length > MAX_MERGED_CHARS ? null : { ...first, content: { type: "text", text } };
}

type TextChunk = Extract<SessionUpdate, { sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" }> & {
  content: { type: "text" };
};

function isText(update: SessionUpdate): update is TextChunk {
  const isChunk =
    update.sessionUpdate === "agent_message_chunk" || update.sessionUpdate === "agent_thought_chunk";
  return isChunk && update.content.type === "text";
}
