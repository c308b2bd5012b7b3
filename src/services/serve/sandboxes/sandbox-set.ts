import { randomBytes } from "node:crypto";
import { BrigError } from "../../../errors.js";
import type { RemoteSandboxOptions, RemoteSandboxRecord } from "../wire/schemas.js";
import type { Capacity } from "./capacity.js";
import { type OpenedPlace, ServedSandbox } from "./served-sandbox.js";

export interface SandboxSetOptions {
  capacity: Capacity;
  open: (request: RemoteSandboxOptions, signal: AbortSignal) => Promise<OpenedPlace>;
  /** The longest that a sandbox may be without a call, and what a client gets that says nothing. */
  idleMs: number;
  /** The same for its whole life. */
  maxLifeMs: number;
  /** Called when a sandbox that has expired cannot be removed. */
  onWarning: (error: unknown) => void;
}

/** All sandboxes of all clients. */
export class SandboxSet {
  readonly #options: SandboxSetOptions;
  readonly #sandboxes = new Map<string, ServedSandbox>();

  constructor(options: SandboxSetOptions) {
    this.#options = options;
  }

  /** Errors: a refusal with 429; those of `open`; the signal's reason, and then nothing is left. */
  async create(
    client: string,
    request: RemoteSandboxOptions,
    signal: AbortSignal,
  ): Promise<RemoteSandboxRecord> {
    const { capacity, open, idleMs, maxLifeMs } = this.#options;
    const seat = await capacity.take(client, { waitMs: request.waitMs ?? 0, signal });
    try {
      const opened = await open(request, signal);
      if (signal.aborted) {
        await opened.close();
        signal.throwIfAborted();
      }
      const id = newId();
      const sandbox = new ServedSandbox({
        id,
        client,
        opened,
        env: request.env ?? {},
        idleMs: Math.min(request.idleMs ?? idleMs, idleMs),
        maxLifeMs: Math.min(request.maxLifeMs ?? maxLifeMs, maxLifeMs),
        seat,
        onExpired: () => void this.#remove(sandbox).catch(this.#options.onWarning),
      });
      this.#sandboxes.set(id, sandbox);
      return sandbox.record;
    } catch (error) {
      seat[Symbol.dispose]();
      throw error;
    }
  }

  /** Error: `serve.unknown`, also for the sandbox of another client. */
  get(client: string, id: string): ServedSandbox {
    const sandbox = this.#sandboxes.get(id);
    if (sandbox !== undefined && sandbox.client === client) return sandbox;
    throw new BrigError("there is no such sandbox", {
      code: "serve.unknown",
      hint: "it may have been deleted, or removed because nobody used it",
    });
  }

  of(client: string): RemoteSandboxRecord[] {
    return [...this.#sandboxes.values()].filter((one) => one.client === client).map(({ record }) => record);
  }

  /** Errors: `serve.unknown`; `engine.failed`, and then it is still there. */
  async remove(client: string, id: string): Promise<void> {
    await this.#remove(this.get(client, id));
  }

  /** Removes all of them. Those that cannot be removed end with their leases. */
  async close(): Promise<void> {
    const { onWarning } = this.#options;
    await Promise.all([...this.#sandboxes.values()].map((sandbox) => this.#remove(sandbox).catch(onWarning)));
  }

  async #remove(sandbox: ServedSandbox): Promise<void> {
    await sandbox.remove();
    this.#sandboxes.delete(sandbox.id);
  }
}

/** Nobody guesses one: 160 random bits. */
export function newId(): string {
  return randomBytes(20).toString("hex");
}
