const STAR = "*".charCodeAt(0);
/** So much of a secret's beginning may be shown while it is not known what follows. */
const EARLY_MAX_BYTES = 4;

/** Masks a stream, piece by piece. Only bytes that may be the beginning of a secret wait for what follows. */
export class StreamMask {
  readonly #forms: readonly Buffer[];
  /** The end of the stream so far, if a form begins with it. */
  #waiting: Buffer = Buffer.alloc(0);
  /** The same bytes as they are shown. A secret that ends in them may be masked already. */
  #shown: Buffer = Buffer.alloc(0);
  /** How many of these were given early. */
  #given = 0;

  constructor(forms: readonly Buffer[]) {
    this.#forms = forms;
  }

  /** Returns what can be shown now; it may be empty. */
  push(chunk: Uint8Array): Buffer {
    const data = Buffer.concat([this.#waiting, chunk]);
    const shown = Buffer.concat([this.#shown, chunk]);
    cover(data, shown, this.#forms);
    const end = data.length - beginningAtEnd(data, this.#forms);
    const from = this.#given;
    this.#waiting = data.subarray(end);
    this.#shown = shown.subarray(end);
    this.#given = Math.max(0, from - end);
    return shown.subarray(from, Math.max(from, end));
  }

  /**
   * Returns what waits, if it is too little to give a secret away: an echo or a prompt that happens to begin like one.
   * What follows is masked all the same.
   */
  early(): Buffer {
    const shortest = Math.min(...this.#forms.map(({ length }) => length));
    if (this.#shown.length > Math.min(EARLY_MAX_BYTES, Math.floor(shortest / 4))) return Buffer.alloc(0);
    return this.#give();
  }

  /** Returns what waits, at the end of the stream. */
  end(): Buffer {
    const rest = this.#give();
    this.#waiting = Buffer.alloc(0);
    this.#shown = Buffer.alloc(0);
    this.#given = 0;
    return rest;
  }

  /** Whether anything waits that was not given. */
  get isWaiting(): boolean {
    return this.#given < this.#shown.length;
  }

  #give(): Buffer {
    const rest = Buffer.from(this.#shown.subarray(this.#given));
    this.#given = this.#shown.length;
    return rest;
  }
}

/** Puts asterisks into `shown` wherever the data has a form, and says whether it has. Forms may overlap. */
export function cover(data: Buffer, shown: Buffer, forms: readonly Buffer[]): boolean {
  let found = false;
  for (const form of forms) {
    let covered = 0;
    for (let at = data.indexOf(form); at !== -1; at = data.indexOf(form, at + 1)) {
      shown.fill(STAR, Math.max(at, covered), at + form.length);
      covered = at + form.length;
      found = true;
    }
  }
  return found;
}

/** The length of the longest end of the data with which a form begins. */
function beginningAtEnd(data: Buffer, forms: readonly Buffer[]): number {
  let longest = 0;
  for (const form of forms) {
    const [first = 0] = form;
    const from = Math.max(0, data.length - form.length + 1);
    for (let at = data.indexOf(first, from); at !== -1; at = data.indexOf(first, at + 1)) {
      const length = data.length - at;
      if (length <= longest) break;
      if (data.compare(form, 0, length, at) === 0) longest = length;
    }
  }
  return longest;
}
