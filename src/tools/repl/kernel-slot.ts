import type { JsKernel } from "./js-kernel.js";

/** The one kernel of a registry, started when the first cell needs it. */
export class KernelSlot {
  readonly #start: () => Promise<JsKernel>;
  #kernel: JsKernel | null = null;

  constructor(start: () => Promise<JsKernel>) {
    this.#start = start;
  }

  /** The kernel that runs, or a new one. */
  async open(): Promise<JsKernel> {
    if (this.#kernel === null || this.#kernel.hasEnded) this.#kernel = await this.#start();
    return this.#kernel;
  }

  /** Ends the kernel, and with it all that was declared. */
  async reset(): Promise<void> {
    const kernel = this.#kernel;
    this.#kernel = null;
    await kernel?.close();
  }
}
