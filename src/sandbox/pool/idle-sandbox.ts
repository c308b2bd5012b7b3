import { basename } from "node:path";
import { BrigError } from "../../errors.js";
import { proveLink } from "../connect-and-prove.js";
import { createSandbox } from "../create-sandbox.js";
import { closeFirst, type OpenedSandbox } from "../open-sandbox.js";
import { runnerPath } from "../plan/create-body.js";
import { tellIfForgotten } from "../process/forgotten.js";
import { type Sandbox, sandboxFrom } from "../sandbox.js";
import type { SandboxOptions } from "../sandbox-options.js";

/** A started sandbox that nobody has used yet. */
export class IdleSandbox {
  readonly #opened: OpenedSandbox;
  readonly #pool: object;

  private constructor(opened: OpenedSandbox, pool: object) {
    this.#opened = opened;
    this.#pool = pool;
    tellIfForgotten(opened, pool);
  }

  /** Errors: as `Sandbox.create`. A failure leaves nothing behind. */
  static async start(options: SandboxOptions, pool: object): Promise<IdleSandbox> {
    return new IdleSandbox(await createSandbox(options), pool);
  }

  /** Whether the image's name still stands for the image that it was started from. */
  async hasCurrentImage(): Promise<boolean> {
    const { engine, plan, proof } = this.#opened;
    return (await engine.inspectImage(plan.image))?.id === proof.imageId;
  }

  /** Called once if it ends by itself. */
  set onGone(listener: () => void) {
    this.#opened.link.onGone = listener;
  }

  /** Called when the caller that the sandbox was handed over to begins to close it. */
  set onClose(listener: () => void) {
    closeFirst(this.#opened, { [Symbol.asyncDispose]: async () => listener() });
  }

  /**
   * Reads the policy back from the kernel once more, and looks for programs: no command has run in the sandbox
   * yet. Errors: `sandbox.gone`, `policy.not-enforced`.
   */
  async proveClean(): Promise<void> {
    const { link, plan, engine, proof } = this.#opened;
    const { report } = await proveLink(link, { plan, engine, imageId: proof.imageId });
    if (report.processes === null) throw notClean("its kernel does not say what runs in it");
    const runner = basename(runnerPath(plan));
    const programs = report.processes.filter((name) => name !== runner);
    if (programs.length === 0) return;
    const list = programs.map((name) => JSON.stringify(name)).join(", ");
    throw notClean(`brig has not started ${list}, which run${programs.length === 1 ? "s" : ""} in it`);
  }

  handOver(): Sandbox {
    tellIfForgotten(this.#opened, this.#pool);
    return sandboxFrom(this.#opened);
  }

  async close(): Promise<void> {
    await sandboxFrom(this.#opened).close();
  }
}

function notClean(reason: string): BrigError {
  return new BrigError(`a sandbox of the pool is not clean: ${reason}`, { code: "policy.not-enforced" });
}
