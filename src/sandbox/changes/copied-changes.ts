import type { Content, ContentPiece } from "../files/file-request.js";

/** How much of the changed files has been copied: to the host, to a fork, back into the workspace, or to where changes are kept. */
export interface CopiedChanges {
  files: number;
  /** Holes do not count. */
  bytes: number;
  /** The files to copy. Some of them may be gone by then, and are not copied. */
  totalFiles: number;
  totalBytes: number;
}

/** Called with how much has been copied, many times a second. It must not throw. */
export type OnCopied = (copied: CopiedChanges) => void;

/** Counts the files that are copied, for somebody who wants to know how much is left. */
export class CopyCount {
  readonly #onCopied: OnCopied | undefined;
  readonly #copied: CopiedChanges = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0 };

  constructor(onCopied: OnCopied | undefined) {
    this.#onCopied = onCopied;
  }

  /** Files of these sizes are to be copied next, this many times. More of them than were expected before change the total. */
  expect(sizes: readonly number[], { times = 1 } = {}): void {
    const { files, bytes, totalFiles, totalBytes } = this.#copied;
    const sum = sizes.reduce((all, size) => all + size, 0);
    this.#copied.totalFiles = Math.max(totalFiles, files + times * sizes.length);
    this.#copied.totalBytes = Math.max(totalBytes, bytes + times * sum);
    this.#tell();
  }

  /** A file of this size has been copied. */
  add(sizeBytes: number): void {
    this.#copied.files++;
    this.#copied.bytes += sizeBytes;
    this.#tell();
  }

  /** Copies a file of this size, whose bytes count as they pass. If that fails, it does not count. */
  async file<T>(sizeBytes: number, content: Content, copy: (content: Content) => Promise<T>): Promise<T> {
    let passed = 0;
    const pass = (bytes: number) => {
      const more = Math.min(bytes, sizeBytes - passed);
      passed += more;
      this.#copied.bytes += more;
      this.#tell();
    };
    const result = await copy(Buffer.isBuffer(content) ? content : counted(content, pass));
    this.add(sizeBytes - passed);
    return result;
  }

  #tell(): void {
    this.#onCopied?.({ ...this.#copied });
  }
}

async function* counted(
  pieces: AsyncIterable<ContentPiece>,
  pass: (bytes: number) => void,
): AsyncGenerator<ContentPiece> {
  for await (const piece of pieces) {
    yield piece;
    pass(piece.data.length);
  }
}
