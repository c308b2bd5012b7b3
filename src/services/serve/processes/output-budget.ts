/** Output that is kept in memory, and can be dropped from its beginning. */
interface KeptOutput {
  readonly memoryBytes: number;
  dropOldest(): void;
}

/** The memory that the kept outputs of several processes may take together. It may be a part of what others have too. */
export class OutputBudget implements KeptOutput {
  readonly limitBytes: number;
  readonly #whole: OutputBudget | null;
  readonly #outputs = new Set<KeptOutput>();
  #usedBytes = 0;

  constructor(limitBytes: number, whole: OutputBudget | null = null) {
    this.limitBytes = limitBytes;
    this.#whole = whole;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get memoryBytes(): number {
    return this.#usedBytes;
  }

  /** Notes that an output takes so many bytes more, or fewer. Whichever takes most then loses its oldest part until there is room. */
  change(output: KeptOutput, bytes: number): void {
    this.#usedBytes += bytes;
    if (output.memoryBytes > 0) this.#outputs.add(output);
    else this.#outputs.delete(output);
    this.#whole?.change(this, bytes);
    if (bytes > 0) while (this.#usedBytes > this.limitBytes) this.dropOldest();
  }

  dropOldest(): void {
    this.#largest().dropOldest();
  }

  /** There is one, because something is used. */
  #largest(): KeptOutput {
    return [...this.#outputs].reduce((largest, one) =>
      one.memoryBytes > largest.memoryBytes ? one : largest,
    );
  }
}
