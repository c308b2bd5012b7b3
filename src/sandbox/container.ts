import { setTimeout as sleep } from "node:timers/promises";
import type { ContainerBody, Engine } from "../docker/types.js";
import { BrigError } from "../errors.js";
import { RunnerLink } from "./channel/runner-link.js";
import { requireAsAsked } from "./compare-created.js";
import { runnerPath } from "./create-body.js";
import { type Placeholders, placeholdersInUse, preparePlaceholders } from "./placeholders.js";
import type { SandboxPlan } from "./plan.js";

const REMOVAL_WAIT_MS = 30_000;
/** A stream that broke is dialled again for so long, or for as long as the lease where that is shorter. */
const RECONNECT_MS = 60_000;

interface ConnectOptions {
  onLateOutput?: ((data: Buffer, call: number) => void) | undefined;
}

/** The container of one session, with the placeholders made for it. */
export class SandboxContainer {
  readonly #engine: Engine;
  readonly #plan: SandboxPlan;
  readonly #keep: boolean;
  #placeholders: Placeholders | undefined;
  #id: string | undefined;

  constructor(engine: Engine, { plan, keep }: { plan: SandboxPlan; keep: boolean }) {
    this.#engine = engine;
    this.#plan = plan;
    this.#keep = keep;
  }

  get id(): string {
    return this.#id ?? "";
  }

  /** `imageId`: what the body's image was when it was looked at. */
  async start(
    body: ContainerBody,
    { imageId, signal }: { imageId: string; signal?: AbortSignal | undefined },
  ): Promise<void> {
    this.#placeholders = await preparePlaceholders(this.#plan.placeholders);
    const name = `brig-${this.#plan.sessionId}`;
    // Never called off half-way: the engine would go on, and make a container that nobody knows of.
    this.#id = await this.#engine.createContainer(body, { name });
    signal?.throwIfAborted();
    requireAsAsked(body, imageId, await this.#engine.inspectCreated(this.#id));
    await this.#engine.startContainer(this.#id);
    signal?.throwIfAborted();
  }

  async connect(token: Buffer, options: ConnectOptions): Promise<RunnerLink> {
    const leaseMs = this.#plan.leaseSeconds * 1000;
    return await RunnerLink.open({
      token,
      dial: () => this.#engine.openExec(this.id, [runnerPath(this.#plan), "connect"]),
      diagnose: (brokenForMs) => this.#diagnose(leaseMs > 0 && brokenForMs >= leaseMs),
      reconnectForMs: leaseMs > 0 ? Math.min(leaseMs, RECONNECT_MS) : RECONNECT_MS,
      onLate: (call, data) => tellLate(options, Buffer.from(data), call),
    });
  }

  async release(): Promise<void> {
    if (!this.#keep) await this.discard();
  }

  async discard(): Promise<void> {
    if (this.#id !== undefined) await this.#remove(this.#id).catch(() => undefined);
    const inUse = await placeholdersInUse(this.#engine, this.#plan.sessionId).catch(() => null);
    if (inUse) await this.#placeholders?.remove(inUse);
  }

  /** The engine removes it by itself too, and says "in progress" to whoever comes second: so wait until it is gone. */
  async #remove(id: string): Promise<void> {
    // A paused process takes no signal: gVisor's container would stay for ever.
    const isPaused = (await this.#engine.inspectContainer(id))?.paused;
    if (isPaused) await this.#engine.unpauseContainer(id).catch(() => undefined);
    await this.#engine.removeContainer(id);
    const deadline = performance.now() + REMOVAL_WAIT_MS;
    while (performance.now() < deadline && (await this.#engine.inspectContainer(id)) !== null)
      await sleep(10);
  }

  async #diagnose(leaseIsOver: boolean): Promise<"runs" | "paused" | BrigError> {
    const state = await this.#engine.inspectContainer(this.id);
    if (state?.running) return state.paused ? "paused" : "runs";
    const reason = state?.oomKilled ? "oom" : leaseIsOver ? "lease" : "killed";
    const messages = {
      oom: "the sandbox ran out of memory and its container was killed",
      lease: "the sandbox ended because nobody was connected for the length of its lease",
      killed: "the sandbox's container was killed or removed from outside",
    };
    return new BrigError(messages[reason], { code: "sandbox.gone", reason, hint: "create another sandbox" });
  }
}

/** It answers to no call whose error its own could be. */
function tellLate({ onLateOutput }: ConnectOptions, data: Buffer, call: number): void {
  try {
    onLateOutput?.(data, call);
  } catch (error) {
    process.emitWarning(error instanceof Error ? error : String(error));
  }
}
