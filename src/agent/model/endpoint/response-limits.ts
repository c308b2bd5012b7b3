import { unusableResponse } from "./model-failure.js";

const MAX_MIB = 64;
const MAX_CALLS = 1000;

/** An endless response would fill the memory, and every call in a response is executed. */
export class ResponseLimits {
  #chars = 0;
  #calls = 0;

  addChars(count: number): void {
    this.#chars += count;
    if (this.#chars > MAX_MIB * 1024 * 1024)
      throw unusableResponse(`the endpoint sent a response of more than ${MAX_MIB} MiB`);
  }

  addCall(): void {
    this.#calls++;
    if (this.#calls > MAX_CALLS)
      throw unusableResponse(`the endpoint sent more than ${MAX_CALLS} calls at once`);
  }
}
