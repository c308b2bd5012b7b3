import type { JsKernel } from "./js-kernel.js";

/** The kernel of a registry. It starts with the first cell. */
export class KernelSlot {
  readonly #start: () => Promise<JsKernel>;
  #kernel: JsKernel | null = null;

  constructor(start: () => Promise<JsKernel>) {
    this.#start = start;
  }

  async open(): Promise<JsKernel> {
    if (this.#kernel === null || this.#kernel.hasEnded) this.#kernel = await this.#start();
    return this.#kernel;
  }

  async reset(): Promise<void> {
    const kernel = this.#kernel;
    this.#kernel = null;
    await kernel?.close();
  }
}
