/** How much of the changed files has been copied: to the host, to a fork, back into the workspace, or to where changes are kept. */
export interface CopiedChanges {
  files: number;
  /** Holes do not count. */
  bytes: number;
  /** The files to copy. Some of them may be gone by then, and are not copied. */
  totalFiles: number;
  totalBytes: number;
  /**
   * "waiting": these are the files of a restore point that is taken first; all four are 0 while they are not known. "placing": all files
   * are copied, and so many of them have got their names. Absent while files are copied.
   */
  phase?: "waiting" | "placing" | undefined;
}

/** Called with how much has been copied, many times a second. It must not throw. */
export type OnCopied = (copied: CopiedChanges) => void;

/** Counts the files that are copied, for somebody who wants to know how much is left. */
export class CopyCount {
  readonly #onCopied: OnCopied | undefined;
  readonly #copied: CopiedChanges = { files: 0, bytes: 0, totalFiles: 0, totalBytes: 0 };
  /** How much of a file is done when it is copied once. */
  #share = 1;
  #reachedBytes = 0;

  constructor(onCopied: OnCopied | undefined) {
    this.#onCopied = onCopied;
  }

  /** Files of these sizes are to be copied next. They change the total only if they were not expected before. */
  expect(sizes: readonly number[]): void {
    const { files, bytes, totalFiles, totalBytes } = this.#copied;
    this.#copied.totalFiles = Math.max(totalFiles, files + this.#share * sizes.length);
    this.#copied.totalBytes = Math.max(totalBytes, bytes + this.#share * sum(sizes));
    this.#tell();
  }

  /** Files of these sizes are to be copied twice, and done after that. */
  expectTwice(sizes: readonly number[]): void {
    this.expect(sizes);
    this.#share = 1 / 2;
  }

  /** So much is copied of the one file that is copied now, until it is added. */
  reach(bytes: number): void {
    this.#reachedBytes = Math.max(this.#reachedBytes, bytes);
    this.#tell();
  }

  /** Files of these sizes have been copied. */
  add(sizes: readonly number[]): void {
    this.#reachedBytes = 0;
    this.#copied.files += this.#share * sizes.length;
    this.#copied.bytes += this.#share * sum(sizes);
    this.#tell();
  }

  /** Copies a file of this size, whose bytes count as they pass. If that fails, it does not count. */
  async file<Piece extends { data: Buffer }, Copied>(
    sizeBytes: number,
    content: Buffer | AsyncIterable<Piece>,
    copy: (content: Buffer | AsyncIterable<Piece>) => Promise<Copied>,
  ): Promise<Copied> {
    let passed = 0;
    const pass = (bytes: number) => {
      const more = Math.min(bytes, sizeBytes - passed);
      passed += more;
      this.#copied.bytes += this.#share * more;
      this.#tell();
    };
    const result = await copy(Buffer.isBuffer(content) ? content : counted(content, pass));
    this.add([sizeBytes - passed]);
    return result;
  }

  /** All files are copied, and so many of them have got their names. */
  place(files: number, totalFiles: number): void {
    this.#onCopied?.({ files, bytes: 0, totalFiles, totalBytes: 0, phase: "placing" });
  }

  /** The files have their names. */
  placed(): void {
    this.#tell();
  }

  #tell(): void {
    const { files, bytes, totalFiles, totalBytes } = this.#copied;
    this.#onCopied?.({
      ...{ files: Math.floor(files), bytes: Math.floor(bytes + this.#reachedBytes) },
      ...{ totalFiles: Math.ceil(totalFiles), totalBytes: Math.ceil(totalBytes) },
    });
  }
}

const sum = (sizes: readonly number[]) => sizes.reduce((all, size) => all + size, 0);

async function* counted<Piece extends { data: Buffer }>(
  pieces: AsyncIterable<Piece>,
  pass: (bytes: number) => void,
): AsyncGenerator<Piece> {
  for await (const piece of pieces) {
    yield piece;
    pass(piece.data.length);
  }
}
