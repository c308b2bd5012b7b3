import { isAnswered } from "../docker/engine-failure.js";
import type { ContainerBody, Engine, EngineStream } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import type { Owner } from "../lib/owner.js";
import { step } from "../lib/steps.js";
import { type Placeholders, placeholdersInUse, preparePlaceholders } from "./plan/placeholders.js";
import type { SandboxPlan } from "./plan/plan.js";
import { requireAsAsked } from "./proof/compare-created.js";
import { findUnanswered, persistently, removeForCertain } from "./removal.js";
import { removeRecord, type SandboxRecord, writeRecord } from "./sandbox-records.js";
import type { Warn } from "./warnings.js";

interface Making {
  plan: SandboxPlan;
  keep: boolean;
  warn: Warn;
  /** Where and in whose name the sandbox is recorded, for whoever finds it after this process was killed. */
  known: { brigHome: string; owner: Owner };
}

interface Starting {
  /** What the body's image was when it was looked at. */
  imageId: string;
  signal?: AbortSignal | undefined;
  /** Called when the engine has been asked to start the container. A failure is left to the caller, who waits for the same work later. */
  meanwhile?: (() => Promise<unknown>) | undefined;
}

/** The container of one session, with the placeholders made for it. */
export class SandboxContainer {
  readonly #engine: Engine;
  readonly #plan: SandboxPlan;
  readonly #keep: boolean;
  readonly #warn: Warn;
  readonly #known: Making["known"];
  #placeholders: Placeholders | undefined;
  #id: string | undefined;
  #attached: EngineStream | undefined;

  constructor(engine: Engine, { plan, keep, warn, known }: Making) {
    this.#known = known;
    this.#engine = engine;
    this.#warn = warn;
    this.#plan = plan;
    this.#keep = keep;
  }

  get id(): string {
    return this.#id ?? "";
  }

  async start(body: ContainerBody, { imageId, signal, meanwhile }: Starting): Promise<void> {
    await this.#record(this.#plan.placeholders.map((path) => ({ path, ino: null })));
    this.#placeholders = await preparePlaceholders(this.#plan.placeholders);
    this.#id = await this.#create(body);
    step("the container is created");
    signal?.throwIfAborted();
    const [created] = await Promise.all([
      this.#engine.inspectCreated(this.#id),
      this.#attach(this.#id),
      this.#record(this.#placeholders.places),
    ]);
    requireAsAsked(body, imageId, created);
    step("the container is as it was asked for");
    const starting = this.#engine.startContainer(this.#id);
    meanwhile?.().catch(() => undefined);
    await starting;
    step("the container is started");
    signal?.throwIfAborted();
  }

  /** The engine may cut the stream before it is used, also while the start fails for another reason. */
  async #attach(id: string): Promise<void> {
    const attached = await this.#engine.attachContainer(id);
    attached.stream.on("error", () => undefined);
    this.#attached = attached;
  }

  /** The stream that was attached before the start. */
  get attached(): EngineStream | undefined {
    return this.#attached;
  }

  /** `isEnding`: its runner was asked to end. */
  async release(how: { isEnding: boolean }): Promise<void> {
    if (!this.#keep) await this.discard(how);
  }

  /**
   * Removes the container, and its placeholders once it is proved gone: below one that still runs they keep protected names from being
   * made. Error: `engine.failed`; then it may be called again.
   */
  async discard(how?: { isEnding: boolean }): Promise<void> {
    this.#attached?.stream.destroy();
    if (this.#id !== undefined) await removeForCertain(this.#engine, this.#id, how);
    const placeholders = this.#placeholders;
    if (placeholders !== undefined && placeholders.made.length > 0)
      await placeholders.remove(await this.#placeholdersInUse());
    const { brigHome, owner } = this.#known;
    await removeRecord(brigHome, { owner, sessionId: this.#plan.sessionId }).catch(this.#warn);
  }

  /** Without a record the sandbox is no worse, only what a kill leaves is not found: so a failure is told and no more. */
  async #record(placeholders: SandboxRecord["placeholders"]): Promise<void> {
    const { brigHome, owner } = this.#known;
    const record = { sessionId: this.#plan.sessionId, owner, endpoint: this.#engine.endpoint, placeholders };
    await writeRecord(brigHome, { ...record, containerId: this.#id ?? null }).catch((cause: unknown) =>
      this.#warn(notRecorded(brigHome, cause)),
    );
  }

  async #placeholdersInUse(): Promise<Set<string>> {
    try {
      return await persistently(() => placeholdersInUse(this.#engine, this.#plan.sessionId));
    } catch (cause) {
      throw new BrigError(
        "the engine does not say which placeholders other sandboxes use, so all of them stay",
        {
          code: "engine.failed",
          hint: "they are empty directories; once this program has ended, brig gc removes them",
          cause,
        },
      );
    }
  }

  /** `discard` where another error is on its way already: what goes wrong is told, not thrown. */
  async giveUp(): Promise<void> {
    await this.discard().catch(this.#warn);
  }

  /** Never called off half-way: the engine would go on, and make a container that nobody knows of. */
  async #create(body: ContainerBody): Promise<string> {
    const name = `brig-${this.#plan.sessionId}`;
    try {
      return await this.#engine.createContainer(body, { name });
    } catch (error) {
      if (!isAnswered(error)) await this.#takeUnanswered(name);
      throw error;
    }
  }

  async #takeUnanswered(name: string): Promise<void> {
    try {
      this.#id = (await findUnanswered(this.#engine, name)) ?? undefined;
    } catch (error) {
      this.#warn(
        new BrigError(`the engine may have made the container ${name}, which never started`, {
          code: "engine.failed",
          hint: "once this program has ended, brig gc removes it",
          cause: error,
        }),
      );
    }
  }

  /** Whether it runs, or why it does not. */
  async diagnose(leaseIsOver: boolean): Promise<"runs" | "paused" | BrigError> {
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

function notRecorded(brigHome: string, cause: unknown): BrigError {
  return new BrigError(
    `the sandbox cannot be recorded in ${JSON.stringify(brigHome)}: ${cause instanceof Error ? cause.message : cause}`,
    {
      code: "config.invalid",
      hint: "brig gc will not find what a killed session leaves; set BRIG_HOME to a directory that can be written",
      cause,
    },
  );
}
