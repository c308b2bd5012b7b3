export type OutputStreamName = "stdout" | "stderr" | "pty";

export interface OutputChunk {
  seq: number;
  stream: OutputStreamName;
  /** Output in base64, as it is sent. */
  chunk: string;
}

interface KeptChunk {
  sent: OutputChunk;
  bytes: number;
}

/** The amount that Codex's own server keeps for each process. */
export const KEPT_OUTPUT_BYTES = 1024 * 1024;
/** Limits the number of objects that the host keeps for a command that prints single bytes. It could be a million otherwise. */
export const KEPT_CHUNKS = 4096;

/**
 * The latest output of a process, for clients that read it again. Each chunk, the exit and the end of output have a number of their own;
 * where the oldest chunks are gone, the numbers of those that are left begin later, which is how the protocol reports the gap.
 */
export class OutputLog {
  #chunks: KeptChunk[] = [];
  #bytes = 0;
  #nextSeq = 1;

  get nextSeq(): number {
    return this.#nextSeq;
  }

  add(stream: OutputStreamName, data: Buffer): OutputChunk {
    const sent = { seq: this.takeSeq(), stream, chunk: data.toString("base64") };
    this.#chunks.push({ sent, bytes: data.length });
    this.#bytes += data.length;
    while ((this.#bytes > KEPT_OUTPUT_BYTES && this.#chunks.length > 1) || this.#chunks.length > KEPT_CHUNKS)
      this.#bytes -= this.#chunks.shift()?.bytes ?? 0;
    return sent;
  }

  takeSeq(): number {
    const seq = this.#nextSeq;
    this.#nextSeq += 1;
    return seq;
  }

  /** The chunks after that number, at least one where there is one, otherwise at most so many bytes. */
  after(seq: number, maxBytes: number): OutputChunk[] {
    const chunks: OutputChunk[] = [];
    let bytes = 0;
    for (const { sent, bytes: size } of this.#chunks) {
      if (sent.seq <= seq) continue;
      if (chunks.length > 0 && bytes + size > maxBytes) break;
      chunks.push(sent);
      bytes += size;
    }
    return chunks;
  }
}
