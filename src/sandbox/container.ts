import { createHash, randomBytes } from "node:crypto";
import { BrigError } from "../errors.js";
import type { Owner } from "../lib/owner.js";
import { step } from "../lib/steps.js";
import { beforeAbort } from "../lib/time/before-abort.js";
import { TOKEN_BYTES } from "./channel/protocol.js";
import { isDefiniteFailure } from "./docker/engine-failure.js";
import type { ContainerBody, Engine, EngineStream } from "./docker/engine-types.js";
import type { Toolbox } from "./images/toolbox-volume.js";
import type { ResumeRecord } from "./lasting/lasting-record.js";
import { createContainerBody } from "./plan/create-body.js";
import {
  adoptPlaceholders,
  type Placeholders,
  type PlaceholderUse,
  placeholdersInUse,
  preparePlaceholders,
} from "./plan/placeholders.js";
import type { SandboxPlan } from "./plan/plan.js";
import { describeNetwork, type NetworkScope } from "./policy/network.js";
import { loadSeccompProfile } from "./policy/policy-directory.js";
import { diagnoseContainer, type Symptoms } from "./process/ended-container.js";
import { requireAsRequested } from "./proof/compare-authority.js";
import { removeAndConfirm, removeUnanswered, waitForContainer, withRetries } from "./removal.js";
import {
  hasEnded,
  notRecorded,
  recordedNow,
  removeEarlierRecords,
  removeRecord,
  type SandboxAbout,
  type SandboxRecord,
  writeRecord,
} from "./sandbox-records.js";
import type { Warn } from "./warnings.js";

interface ContainerOptions {
  plan: SandboxPlan;
  toolbox: Toolbox;
  /** The id that the image had when the plan was made. */
  imageId: string;
  keep: boolean;
  warn: Warn;
  /**
   * The home directory and the owner of the sandbox's record, by which `brig gc` can remove it after a crash. Null
   * for a container of a workspace's tree, which has a record of its own.
   */
  recordFor: RecordFor | null;
  /** Default: a name that contains the session's id. */
  name?: string | undefined;
}

interface RecordFor {
  brigHome: string;
  owner: Owner;
  about: SandboxAbout;
  /** Whether another process can go on with it. Default: false. */
  lasts?: boolean | undefined;
}

interface StartOptions {
  signal?: AbortSignal | undefined;
  /** Work to do while the engine starts the container. The caller awaits it later, and sees its failure. */
  whileStarting?: (() => Promise<unknown>) | undefined;
}

/** The container of one session, and the placeholders created for it. */
export class SandboxContainer {
  readonly engine: Engine;
  readonly plan: SandboxPlan;
  readonly imageId: string;
  /** Its runner takes streams only from those who know this. */
  readonly token: Buffer;
  readonly #toolbox: Toolbox;
  readonly #keep: boolean;
  readonly #warn: Warn;
  readonly #recordFor: ContainerOptions["recordFor"];
  readonly #name: string;
  #network: string | undefined;
  #placeholders: Placeholders | undefined;
  #id: string | undefined;
  #attached: EngineStream | undefined;
  #isDiscarded = false;
  /** The number of times that it was started from here. */
  #starts = 0;
  #hasToldOfPause = false;
  /** The engine may have created it, but has not said so, or it could not be removed. */
  #mayExist = false;

  constructor(engine: Engine, options: ContainerOptions, token: Buffer = randomBytes(TOKEN_BYTES)) {
    this.token = token;
    const { plan, toolbox, imageId, keep, warn, recordFor, name } = options;
    this.#recordFor = recordFor;
    this.#name = name ?? `brig-${plan.sessionId}`;
    this.engine = engine;
    this.imageId = imageId;
    this.#toolbox = toolbox;
    this.#warn = warn;
    this.plan = plan;
    this.#keep = keep;
  }

  /** One that another process has started, which is gone. */
  static resume(
    engine: Engine,
    options: ContainerOptions,
    { containerId, token, placeholders }: Pick<ResumeRecord, "containerId" | "token" | "placeholders">,
  ): SandboxContainer {
    const container = new SandboxContainer(engine, options, Buffer.from(token, "hex"));
    container.#id = containerId;
    container.#starts = 1;
    container.#placeholders = adoptPlaceholders(placeholders);
    container.#record(container.#placeholders.made);
    const { recordFor, plan } = options;
    if (recordFor !== null) removeEarlierRecords(recordFor.brigHome, { ...recordFor, ...plan });
    return container;
  }

  get id(): string {
    return this.#id ?? "";
  }

  /** What was made on the host for it. */
  get placeholders(): SandboxRecord["placeholders"] {
    return this.#placeholders?.made ?? [];
  }

  /** Whether the engine may still have it, so that its record has to stay. */
  get mayExist(): boolean {
    return this.#mayExist;
  }

  async start({ signal, whileStarting }: StartOptions): Promise<void> {
    const body = createContainerBody(this.plan, {
      toolbox: this.#toolbox,
      tokenHash: createHash("sha256").update(this.token).digest("hex"),
      seccompJson: await loadSeccompProfile(this.plan.seccomp),
    });
    this.#record(this.plan.placeholders.map((path) => ({ path, ino: null })));
    this.#placeholders = await preparePlaceholders(this.plan.placeholders, { files: this.plan.emptyFiles });
    this.#id = await this.#create(body, signal);
    step("the container is created");
    signal?.throwIfAborted();
    const answers = Promise.all([this.engine.inspectCreated(this.#id), this.#attach(this.#id)]);
    this.#record(this.#placeholders.made);
    const [created] = await beforeAbort(answers, signal);
    requireAsRequested(body, this.imageId, created);
    step("the container is as requested");
    this.#starts++;
    const starting = this.engine.startContainer(this.#id);
    whileStarting?.().catch(() => undefined);
    await beforeAbort(starting, signal);
    step("the container is started");
    signal?.throwIfAborted();
  }

  /** The engine may cut the stream before anybody uses it, so its errors are ignored until then. */
  async #attach(id: string): Promise<void> {
    const attached = await this.engine.attachContainer(id);
    attached.stream.on("error", () => undefined);
    this.#attached = attached;
    // The engine answered only after the start had failed. An open stream would keep the process alive.
    if (this.#isDiscarded) attached.stream.destroy();
  }

  /** Starts the container once more after it has ended: its runner is a new one, with the same token. */
  async startAgain(): Promise<void> {
    this.#attached?.stream.destroy();
    await this.#attach(this.id);
    this.#starts++;
    await this.engine.startContainer(this.id);
  }

  /** The stream to the runner's standard input and output, attached before the start. */
  get attached(): EngineStream | undefined {
    return this.#attached;
  }

  /** Discards the container unless it is kept. `isEnding` says that its runner was asked to end. */
  async release(how: { isEnding: boolean }): Promise<void> {
    if (!this.#keep) await this.discard(how);
  }

  /**
   * Removes the container, and then its placeholders, which until then keep commands from creating protected
   * names. Error: `engine.failed`; it may then be called again.
   */
  async discard(how?: { isEnding: boolean }): Promise<void> {
    this.#isDiscarded = true;
    this.#attached?.stream.destroy();
    const { outlivesProcesses, staysAtEnd = false } = this.plan;
    const ending = { isEnding: how?.isEnding === true, staysAtEnd: outlivesProcesses || staysAtEnd };
    const placeholders = this.#placeholders;
    const hasPlaceholders = placeholders !== undefined && placeholders.made.length > 0;
    const early = hasPlaceholders ? this.#placeholdersInUse().catch(() => null) : null;
    if (this.#id !== undefined) {
      this.#mayExist = true;
      await removeAndConfirm(this.engine, this.#id, ending);
      this.#mayExist = false;
    }
    if (hasPlaceholders) await this.#removePlaceholders(placeholders, await early);
    if (this.#mayExist) this.#record([]);
    else this.#forget();
  }

  #forget(): void {
    if (this.#recordFor === null) return;
    const { brigHome, owner } = this.#recordFor;
    try {
      removeRecord(brigHome, { owner, sessionId: this.plan.sessionId });
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Has the record say that the sandbox reaches something else from now on. */
  readonly noteNetwork = (network: NetworkScope): void => {
    this.#network = describeNetwork(network);
    if (!this.#isDiscarded) this.#record(this.#placeholders?.made ?? []);
  };

  /** Only warns of a failure: the record is needed only if this process is killed. */
  #record(placeholders: SandboxRecord["placeholders"]): void {
    if (this.#recordFor === null) return;
    const { brigHome, owner, about: opened, lasts } = this.#recordFor;
    const about = { ...opened, network: this.#network ?? opened.network };
    const { endpoint } = this.engine;
    const record = { sessionId: this.plan.sessionId, owner, endpoint, placeholders, about, lasts };
    try {
      writeRecord(brigHome, { ...record, containerId: this.#id ?? null });
    } catch (cause) {
      this.#warn(notRecorded(brigHome, cause));
    }
  }

  /**
   * Removes the placeholders that no other session has mounted or is about to mount. The engine's answer is out of date as
   * soon as it is given, so the records of others are read afterwards, and nothing is waited for between that and the removal. `early` is what it said
   * before the container was gone: that is enough where nobody else has them. Of two that end at the same time, the second one has to see
   * that the first is gone.
   */
  async #removePlaceholders(placeholders: Placeholders, early: PlaceholderUse | null): Promise<void> {
    const lookedFor = new Set<string>();
    let answer =
      early !== null && placeholders.made.every(({ path }) => !early.paths.has(path)) ? early : null;
    while (true) {
      const { sessions, paths } = answer ?? (await this.#placeholdersInUse());
      answer = null;
      const others = this.#recordedByOthers(placeholders).filter(({ sessionId }) => !sessions.has(sessionId));
      const isCreated = ({ containerId, endpoint }: SandboxRecord) =>
        containerId !== null && endpoint === this.engine.endpoint;
      // Its container was created after the engine's answer, or is gone: then the next answer does not have it either.
      const unknown = others.filter((one) => isCreated(one) && !lookedFor.has(one.sessionId));
      for (const { sessionId } of unknown) lookedFor.add(sessionId);
      if (unknown.length > 0) continue;
      const starting = others.filter((one) => !isCreated(one));
      const awaited = starting.flatMap((record) => record.placeholders.map(({ path }) => path));
      return await placeholders.remove(new Set([...paths, ...awaited]));
    }
  }

  #recordedByOthers({ made }: Placeholders): SandboxRecord[] {
    if (this.#recordFor === null) return [];
    const { brigHome, owner } = this.#recordFor;
    const own = new Set(made.map(({ path }) => path));
    return recordedNow(brigHome).filter(
      (record) =>
        record.sessionId !== this.plan.sessionId &&
        record.placeholders.some(({ path }) => own.has(path)) &&
        !hasEnded(record.owner, owner),
    );
  }

  async #placeholdersInUse(): Promise<PlaceholderUse> {
    try {
      return await withRetries(() => placeholdersInUse(this.engine, this.plan.sessionId));
    } catch (cause) {
      throw new BrigError(
        "the engine does not say which placeholders other sandboxes use, so none is removed",
        {
          code: "engine.failed",
          hint: "they are empty directories; once this program has ended, brig gc removes them",
          cause,
        },
      );
    }
  }

  /** Discards the container after another error. A further failure is a warning, not to hide that error. */
  async giveUp(): Promise<void> {
    await this.discard().catch(this.#warn);
  }

  /** The engine takes no signal: it would not stop, and would create a container that nobody knows of. */
  async #create(body: ContainerBody, signal: AbortSignal | undefined): Promise<string> {
    const name = this.#name;
    const creating = this.engine.createContainer(body, { name });
    try {
      return await beforeAbort(creating, signal);
    } catch (error) {
      if (isDefiniteFailure(error)) throw error;
      await this.#adoptUnanswered(name);
      if (this.#id === undefined) {
        this.#mayExist = true;
        // An engine that answers even later has created what nobody else removes before this program has ended.
        creating.then((id) => this.#removeLate(id)).catch(() => undefined);
      }
      throw error;
    }
  }

  async #removeLate(id: string): Promise<void> {
    await this.engine.removeContainer(id);
    this.#mayExist = false;
    if (this.#isDiscarded) this.#forget();
  }

  async #adoptUnanswered(name: string): Promise<void> {
    try {
      this.#id = (await waitForContainer(this.engine, name)) ?? undefined;
      if (this.#id === undefined) await removeUnanswered(this.engine, name);
    } catch (error) {
      this.#warn(
        new BrigError(`the engine may have created the container ${name}, which was never started`, {
          code: "engine.failed",
          hint: "once this program has ended, brig gc removes it",
          cause: error,
        }),
      );
    }
  }

  /** Asks the engine whether the container runs as it was started here. Resolves to the reason if it does not. */
  async diagnose(symptoms: Symptoms): Promise<"runs" | "paused" | BrigError> {
    const found = await diagnoseContainer(this.engine, { id: this.id, starts: this.#starts }, symptoms);
    if (found === "paused") this.#tellOfPause();
    return found;
  }

  #tellOfPause(): void {
    if (this.#hasToldOfPause) return;
    this.#hasToldOfPause = true;
    const hint = `it goes on after: docker unpause ${this.id.slice(0, 12)}`;
    const message = "somebody has paused the sandbox's container, so what runs in it waits";
    this.#warn(new BrigError(message, { code: "engine.failed", hint }));
  }
}
