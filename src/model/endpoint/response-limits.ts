import { senselessAnswer } from "./model-failure.js";

const MAX_MIB = 64;
const MAX_CALLS = 1000;

/** What one response may come to: one that never ends would fill the memory, and every call in it is made. */
export class ResponseLimits {
  #chars = 0;
  #calls = 0;

  /** Of its texts as they arrive, and of its items. */
  addChars(count: number): void {
    this.#chars += count;
    if (this.#chars > MAX_MIB * 1024 * 1024)
      throw senselessAnswer(`the endpoint sent a response of more than ${MAX_MIB} MiB`);
  }

  addCall(): void {
    this.#calls++;
    if (this.#calls > MAX_CALLS)
      throw senselessAnswer(`the endpoint made more than ${MAX_CALLS} calls at once`);
  }
}
