import type { Transform } from "node:stream";
import { maskStream, maskText } from "./mask.js";
import { SpelledTexts } from "./spelled/spelled-texts.js";

/** Hides secrets in the answers of servers. */
export class AnswerMask {
  readonly #texts: SpelledTexts;
  readonly #inLowerCase: SpelledTexts;

  constructor(secrets: readonly string[]) {
    this.#texts = new SpelledTexts(secrets);
    this.#inLowerCase = new SpelledTexts(secrets.map((secret) => secret.toLowerCase()));
  }

  text(text: string): string {
    return maskText(text, this.#texts);
  }

  /** Hides secrets also in other capitals: servers write names of headers as they like. */
  headerName(name: string): string {
    const shown = this.text(name);
    const lower = maskText(name.toLowerCase(), this.#inLowerCase);
    return shown.replace(/./g, (one, at: number) => (lower[at] === "*" ? "*" : one));
  }

  stream(): Transform {
    return maskStream(this.#texts);
  }
}
