import { BrigError } from "../errors.js";
import { refuseUnknownOptions } from "../known-options.js";
import type * as changes from "./changes/workspace-change.js";
import { connectSandbox, createSandbox } from "./create-sandbox.js";
import type { EngineConnection } from "./docker/engine-types.js";
import { sandboxFiles } from "./files/files.js";
import type { EgressListener, WatchEgressOptions } from "./network/egress/sandbox-egress.js";
import { setNetwork, watchEgress } from "./network/egress/set-network.js";
import { closeFirst, type OpenedSandbox, queueClose } from "./open-sandbox.js";
import { commandEnvironment } from "./plan/image-settings.js";
import type { RestorePoint, RestorePointOptions, UndoneCall } from "./points/restore-point.js";
import type { ConnectedSandbox, PortableSandbox, PortableWorkspace } from "./portable-sandbox.js";
import type { CommandContext } from "./process/command.js";
import { stuckTree } from "./process/ended-container.js";
import { tellIfForgotten } from "./process/forgotten.js";
import { RunningProcess } from "./process/process.js";
import { exec } from "./process/run-to-end.js";
import type { Proof } from "./proof/proof.js";
import { endCommands } from "./receipt/end-commands.js";
import type { Receipt } from "./receipt/receipt.js";
import * as known from "./sandbox-option-names.js";
import type { ConnectOptions, SandboxOptions } from "./sandbox-options.js";
import type * as ports from "./sandbox-types.js";
import type { ExecOptions, ExecResult, SandboxFiles, SandboxProcess, SpawnOptions } from "./sandbox-types.js";

let construct: (opened: OpenedSandbox) => Sandbox;
let openedIn: (sandbox: Sandbox) => OpenedSandbox;
let contextIn: (sandbox: Sandbox) => CommandContext;

/**
 * Makes a `Sandbox` of what `openSandbox` opened. Not exported by the package: it is for the command line,
 * which loads this module while the container starts, and for tests that break the stream.
 */
export function sandboxFrom(opened: OpenedSandbox): Sandbox {
  return construct(opened);
}

/** The parts that a sandbox was made of. Not exported by the package. */
export function openedSandboxOf(sandbox: Sandbox): OpenedSandbox {
  return openedIn(sandbox);
}

/** What its commands have in common. Not exported by the package. */
export function commandContextOf(sandbox: Sandbox): CommandContext {
  return contextIn(sandbox);
}

/**
 * One container in which commands run under a policy that the kernel confirmed. Close it, or use
 * `await using`. If this process dies, the container ends by itself when its lease runs out.
 *
 * Errors of every method: `sandbox.gone` (with a `reason`) when the container has ended, `protocol.invalid`
 * when its runner was tampered with. Nothing that a command does is an error.
 */
export class Sandbox implements PortableSandbox, PortableWorkspace {
  /** The session's id, also on the container's `brig.session` label. */
  readonly id: string;
  readonly containerId: string;
  /** The kernel's answers about the policy, from before the first command ran. */
  readonly proof: Proof;
  readonly image: string;
  /** The directory in which commands start: the workspace at the host's own path, or `/` without one. */
  readonly workingDirectory: string;
  readonly files: SandboxFiles;
  /** Replaces the sandbox's secrets by asterisks, as in the output of its commands. Null without secrets. */
  readonly maskSecrets: ((text: string) => string) | null;
  readonly #opened: OpenedSandbox;
  readonly #context: CommandContext;
  readonly #channelsUsedByProof: number;
  #receipt: Receipt | undefined;
  #closing: Promise<Receipt> | undefined;

  static {
    construct = (opened) => new Sandbox(opened);
    openedIn = (sandbox) => sandbox.#opened;
    contextIn = (sandbox) => sandbox.#context;
  }

  private constructor(opened: OpenedSandbox) {
    const { plan, link } = opened;
    const { mask } = opened.settings.inspection ?? {};
    this.id = plan.sessionId;
    this.containerId = opened.containerId;
    this.proof = opened.proof;
    this.image = plan.image;
    this.workingDirectory = plan.workingDirectory;
    this.#opened = opened;
    this.#channelsUsedByProof = opened.hasRun === true ? -1 : link.channelCount;
    this.#context = {
      link,
      cwd: plan.workingDirectory,
      env: commandEnvironment(plan, opened.egress?.environment),
      egress: opened.egress ?? undefined,
      mask,
      onStuck: () => this.#endStuck(),
    };
    this.files = sandboxFiles(this.#context);
    this.maskSecrets = mask === undefined ? null : (text) => mask.text(text);
    if (!plan.outlivesProcesses) link.onGone = () => void this.#closeOrWarn();
  }

  /**
   * Creates and starts the container, and proves the policy. Errors: `engine.unreachable`, `engine.too-old`,
   * `engine.failed`, `image.missing`, `usage.invalid`, `policy.invalid`, `policy.not-enforced` when the
   * kernel's answer differs from the policy, `workspace.invalid`, or the signal's reason. A failure leaves
   * nothing behind.
   */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    refuseUnknownOptions(options, known.sandboxOptionNames, {
      of: "Sandbox.create",
      meant: known.sandboxOptionsMeant,
    });
    const opened = await createSandbox(options);
    tellIfForgotten(opened);
    return new Sandbox(opened);
  }

  /**
   * Connects to a sandbox that `brig up` has started, by its name or id. Closing what is returned lets go of it and ends nothing.
   * Errors: `sandbox.unknown`; `sandbox.gone` for one that has ended; `config.invalid` if another user could answer for it.
   */
  static async connect(nameOrId: string, options: ConnectOptions = {}): Promise<ConnectedSandbox> {
    refuseUnknownOptions(options, known.connectOptionNames, { of: "Sandbox.connect" });
    return await connectSandbox(nameOrId, options);
  }

  /**
   * Runs a program to its end. A non-zero exit, a timeout and a missing program are results. Errors:
   * `exec.invalid`, `exec.bad-cwd`, or the signal's reason after an abort.
   */
  exec(argv: readonly string[], options: ExecOptions & { encoding: "buffer" }): Promise<ExecResult<Buffer>>;
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult<string | Buffer>> {
    refuseUnknownOptions(options, known.execOptionNames, { of: "sandbox.exec" });
    return await exec(this.#context, argv, options);
  }

  /** Starts a program and returns its streams. If it fails to start, its `exit` says why. */
  async spawn(argv: readonly string[], options: SpawnOptions = {}): Promise<SandboxProcess> {
    refuseUnknownOptions(options, known.spawnOptionNames, { of: "sandbox.spawn" });
    return new RunningProcess(this.#context, argv, options);
  }

  /**
   * Makes a server in the sandbox reachable on 127.0.0.1 of this machine, until the sandbox is closed. Without a
   * server inside, connections are reset. Errors: `sandbox.port-in-use`, `sandbox.port-failed`, `usage.invalid`.
   */
  async forward(port: number, options: ports.ForwardOptions = {}): Promise<ports.ForwardedPort> {
    refuseUnknownOptions(options, known.forwardOptionNames, { of: "sandbox.forward" });
    const { forwardPort } = await import("./network/forward-port.js");
    const forwarded = await forwardPort(this.#opened.link, port, options);
    closeFirst(this.#opened, forwarded);
    if (this.#closing !== undefined) await forwarded.close();
    return forwarded;
  }

  /**
   * Compares a copy-on-write workspace with the host's. It may be called while commands run. Errors:
   * `workspace.invalid` for a workspace of another kind, `usage.invalid` for a path outside it, `engine.failed`.
   */
  async diff(options: changes.DiffOptions = {}): Promise<changes.WorkspaceDiff> {
    refuseUnknownOptions(options, known.diffOptionNames, { of: "sandbox.diff" });
    return await (await loadChanges()).diffSandbox(this.#opened, options);
  }

  /**
   * Makes the changes of a copy-on-write workspace on the host: all that are asked for, or none if the host
   * has changed one of the paths too. Each file is replaced whole. Errors: those of `diff`; `file.*`, with
   * nothing changed, for example when the disk is full.
   */
  async apply(options: changes.ApplyOptions = {}): Promise<changes.ApplyResult> {
    refuseUnknownOptions(options, known.applyOptionNames, { of: "sandbox.apply" });
    return await (await loadChanges()).applySandbox(this.#opened, options);
  }

  /**
   * Opens another sandbox with the same options on a copy of this one's copy-on-write workspace. From then on
   * the two are independent; running processes are not copied. Errors: those of `diff` and `create`.
   */
  async fork(options: changes.ForkOptions = {}): Promise<Sandbox> {
    refuseUnknownOptions(options, known.forkOptionNames, { of: "sandbox.fork" });
    return new Sandbox(await (await loadChanges()).forkSandbox(this.#opened, options));
  }

  /** The changes in this fork since it was made. Error: `workspace.invalid` if the sandbox is no fork. */
  async changesSinceFork(options: changes.ForkPathOptions = {}): Promise<changes.ForkDiff> {
    refuseUnknownOptions(options, known.forkPathOptionNames, { of: "sandbox.changesSinceFork" });
    return await (await loadChanges()).diffOfFork(this.#opened, options);
  }

  /**
   * Makes the changes of this fork in the sandbox that it was forked from: all of them, or none if one of the
   * paths was changed there too. Errors: `workspace.invalid` if it is not a fork of that sandbox; `file.*`,
   * with nothing changed.
   */
  async applyTo(parent: object, options: changes.ForkPathOptions = {}): Promise<changes.ForkApplied> {
    refuseUnknownOptions(options, known.forkPathOptionNames, { of: "sandbox.applyTo" });
    if (!(parent instanceof Sandbox))
      throw new BrigError("sandbox.applyTo takes the sandbox that was forked", { code: "usage.invalid" });
    return await (await loadChanges()).applyForkTo(this.#opened, parent.#opened, options);
  }

  /**
   * Stores the state of the copy-on-write workspace in `$BRIG_HOME`, for `Sandbox.create({ from })`, until it is
   * removed. Errors: those of `diff`; `file.too-large` for too many bytes; `snapshot.failed` for a full disk.
   */
  async snapshot(options: changes.SnapshotOptions = {}): Promise<changes.Snapshot> {
    refuseUnknownOptions(options, known.snapshotOptionNames, { of: "sandbox.snapshot" });
    return await (await loadChanges()).snapshotSandbox(this.#opened, options);
  }

  /**
   * Stores what has changed in the copy-on-write workspace since the last restore point in `$BRIG_HOME`, where it
   * stays after `close`. Null if nothing has, or once all points together have 10 GiB. Errors: those of `diff`;
   * `snapshot.failed`, after which the next point stores the same and more.
   */
  async restorePoint(options: RestorePointOptions = {}): Promise<RestorePoint | null> {
    refuseUnknownOptions(options, known.restorePointOptionNames, { of: "sandbox.restorePoint" });
    return await (await loadPoints()).takeRestorePoint(this.#opened, options);
  }

  /** The restore points so far, in their order. Error: `workspace.invalid` without a copy-on-write workspace. */
  async restorePoints(options: RestorePointOptions = {}): Promise<RestorePoint[]> {
    refuseUnknownOptions(options, known.restorePointOptionNames, { of: "sandbox.restorePoints" });
    return await (await loadPoints()).listRestorePoints(this.#opened, options);
  }

  /**
   * Makes the workspace as it was at a restore point, or at the start with 0, while commands go on. This leaves
   * a point of its own; null if nothing differs. Errors: `workspace.conflict`, with nothing changed, if a command
   * writes to one of the files meanwhile; `snapshot.unknown` for no such point; those of `restorePoint`.
   */
  async restore(point: number, options: RestorePointOptions = {}): Promise<RestorePoint | null> {
    refuseUnknownOptions(options, known.restorePointOptionNames, { of: "sandbox.restore" });
    return await (await loadPoints()).restorePointOf(this.#opened, point, options);
  }

  /**
   * Makes the workspace as it was before the last restore point that was not undone yet; called again, before
   * the one before that. Null if there is nothing to undo. Errors: those of `restore`.
   */
  async undo(options: RestorePointOptions = {}): Promise<UndoneCall | null> {
    refuseUnknownOptions(options, known.restorePointOptionNames, { of: "sandbox.undo" });
    return await (await loadPoints()).undoCall(this.#opened, options);
  }

  /** Replaces the allow-list, within what the policy permits. Errors: `usage.invalid`; `policy.not-enforced` if it was created without one. */
  setNetwork(network: string): void {
    setNetwork(this.#opened, network);
  }

  /** Calls the listener like `onEgress`, from now on. It is never called if there is no allow-list. */
  watchEgress(listener: EgressListener, options?: WatchEgressOptions): void {
    watchEgress(this.#opened, listener, options);
  }

  /** Sends a few bytes to the runner and back, which is the least time that any call takes. */
  async ping(): Promise<void> {
    await this.#opened.link.ping();
  }

  /** The id of the snapshot that restore points are stored in; null without a copy-on-write workspace. */
  get snapshotId(): string | null {
    return this.#opened.tree?.id ?? null;
  }

  /** The connection to the engine, for further sandboxes on it. */
  get engine(): EngineConnection {
    return this.#opened.engine;
  }

  /**
   * Ends every process and removes the container, unless it was created with `keep`. The receipt lists files
   * that the session left on the host and that may run by themselves later. With `git: "branch"` it first brings
   * the new commits to the host, and the receipt says what became of them. Error: `engine.failed` when the
   * engine does not confirm that the container is gone: processes may then still run in it, and the
   * placeholders of protected names stay. May be called again.
   */
  close(options: changes.CloseOptions = {}): Promise<Receipt> {
    refuseUnknownOptions(options, known.closeOptionNames, { of: "sandbox.close" });
    this.#closing ??= queueClose(this.#opened.engine.endpoint, () => this.#release(options)).catch(
      (error: unknown) => {
        this.#closing = undefined;
        throw error;
      },
    );
    return this.#closing;
  }

  /** Works like `close`, but a failure is a warning, not to hide an error that is being thrown. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeOrWarn();
  }

  async #closeOrWarn(): Promise<void> {
    await this.close().catch(this.#opened.warn);
  }

  async #release({ onCopied }: changes.CloseOptions): Promise<Receipt> {
    const closed = closedByCaller();
    await Promise.all((this.#opened.closedFirst ?? []).map((resource) => resource[Symbol.asyncDispose]()));
    // The caller of `close` learns of a failure, so the end of the link needs no second, unasked close.
    this.#opened.link.onGone = () => undefined;
    if (this.#receipt === undefined) {
      const hasRun = this.#opened.link.channelCount !== this.#channelsUsedByProof;
      this.#receipt = await endCommands(this.#opened, {
        ...{ context: this.#context, hasRun, closed, onCopied },
      });
    }
    const { link, isKept, release } = this.#opened;
    if (isKept) link.close(closed);
    const isEnding = !isKept && link.end(closed);
    await release({ isEnding });
    return this.#receipt;
  }

  #endStuck(): void {
    this.#opened.link.close(stuckTree());
    if (!this.#opened.plan.outlivesProcesses) void this.#closeOrWarn();
  }
}

/** Loaded on demand, because many sandboxes are only used to run commands. */
const loadChanges = () => import("./changes/sandbox-changes.js");
const loadPoints = () => import("./points/sandbox-points.js");

/** The error for calls after `close`, and for calls that it ends. */
function closedByCaller(): BrigError {
  return new BrigError("the sandbox was closed", {
    code: "sandbox.gone",
    reason: "closed",
    hint: "create another one",
  });
}
