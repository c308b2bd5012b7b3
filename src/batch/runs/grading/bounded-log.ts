import { type FileHandle, open } from "node:fs/promises";

const LOG_MAX_BYTES = 16 * 1024 * 1024;

/** A file of the host that takes the output of a command, up to a limit. The end says how much was left out. */
export class BoundedLog implements AsyncDisposable {
  readonly #file: FileHandle;
  #leftBytes: number;
  #omittedBytes = 0;

  private constructor(file: FileHandle, maxBytes: number) {
    this.#file = file;
    this.#leftBytes = maxBytes;
  }

  static async create(path: string, { maxBytes = LOG_MAX_BYTES } = {}): Promise<BoundedLog> {
    return new BoundedLog(await open(path, "w", 0o600), maxBytes);
  }

  /** One call at a time. */
  async write(chunk: Uint8Array): Promise<void> {
    const kept = chunk.subarray(0, this.#leftBytes);
    this.#leftBytes -= kept.length;
    this.#omittedBytes += chunk.length - kept.length;
    if (kept.length > 0) await this.#file.appendFile(kept);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#omittedBytes > 0)
      await this.#file.appendFile(`\n[${this.#omittedBytes} more bytes were left out]\n`);
    await this.#file.close();
  }
}
