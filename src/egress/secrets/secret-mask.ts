import { mapTexts } from "../../lib/json/map-texts.js";
import { formsOf } from "./mask.js";
import { type Deliver, MaskedOutput } from "./masked-output.js";
import { cover } from "./stream-mask.js";

const STAR = "*".charCodeAt(0);
/** Of a secret that was cut. Shorter parts may be what all keys of a service begin with. */
const PART_MIN_BYTES = 12;
/** Keys that expire are read anew every hour or so, and each secret makes every output slower. */
const ADDED_MAX = 32;

/** Hides secrets in what leaves a sandbox towards a person, a model or a file. What it replaces keeps its length. */
export class SecretMask {
  /** Always the same list, since the outputs of running commands have it. */
  readonly #forms: Buffer[] = [];
  #parts: readonly Part[] = [];
  readonly #first: readonly Buffer[];
  #added: Buffer[][] = [];

  constructor(secrets: readonly { value: string }[]) {
    this.#first = secrets.flatMap(({ value }) => formsOf(value));
    this.#use(this.#first);
  }

  /** Hides these as well from now on, also in the output of commands that run already. Of a long series, the newest. */
  add(values: readonly string[]): void {
    this.#added = [...this.#added, ...values.map(formsOf)].slice(-ADDED_MAX);
    this.#use([...this.#first, ...this.#added.flat()]);
  }

  #use(forms: readonly Buffer[]): void {
    this.#forms.splice(0, this.#forms.length, ...forms);
    this.#parts = forms.map(partsOf);
  }

  /** Masks the output of one command. */
  output(deliver: Deliver): MaskedOutput {
    return new MaskedOutput(this.#forms, deliver);
  }

  /**
   * Also hides what is left of a secret where a text was cut, if it is half of it or more: tools cut long lines and
   * long outputs.
   */
  text(text: string): string {
    const data = Buffer.from(text);
    const shown = Buffer.from(data);
    const found = [cover(data, shown, this.#forms), this.#coverParts(data, shown)];
    return found.includes(true) ? shown.toString() : text;
  }

  /** As `text`. Returns a copy. */
  bytes(data: Uint8Array): Buffer {
    const [raw, shown] = [Buffer.from(data), Buffer.from(data)];
    cover(raw, shown, this.#forms);
    this.#coverParts(raw, shown);
    return shown;
  }

  /** All texts in a value of plain objects and lists. */
  within<Value>(value: Value): Value {
    return mapTexts(value, (text) => this.text(text));
  }

  #coverParts(data: Buffer, shown: Buffer): boolean {
    let found = false;
    for (const { form, start, end } of this.#parts) {
      for (let at = data.indexOf(start); at !== -1; at = data.indexOf(start, at + start.length)) {
        let length = start.length;
        while (length < form.length && data[at + length] === form[length]) length++;
        shown.fill(STAR, at, at + length);
        found = true;
      }
      for (let at = data.indexOf(end); at !== -1; at = data.indexOf(end, at + end.length)) {
        let length = end.length;
        const past = at + end.length;
        while (length < form.length && data[past - length - 1] === form[form.length - length - 1]) length++;
        shown.fill(STAR, past - length, past);
        found = true;
      }
    }
    return found;
  }
}

interface Part {
  form: Buffer;
  /** The least of it that is hidden, at its two ends. */
  start: Buffer;
  end: Buffer;
}

function partsOf(form: Buffer): Part {
  const length = Math.min(form.length, Math.max(PART_MIN_BYTES, Math.ceil(form.length / 2)));
  return { form, start: form.subarray(0, length), end: form.subarray(form.length - length) };
}
