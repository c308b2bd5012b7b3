import type { EngineConnection } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { refuseUnknownOptions } from "../known-options.js";
import { createSandbox } from "./create-sandbox.js";
import { sandboxFiles } from "./files/files.js";
import type { OpenedSandbox } from "./open-sandbox.js";
import { commandEnvironment } from "./plan/image-settings.js";
import { RunningProcess } from "./process/process.js";
import { exec } from "./process/run-to-end.js";
import type { CommandContext } from "./process/start-command.js";
import type { Proof } from "./proof/proof.js";
import { makeReceipt } from "./receipt/make-receipt.js";
import { emptyReceipt, type Receipt } from "./receipt/receipt.js";
import {
  execOptionNames,
  sandboxOptionNames,
  sandboxOptionsMeant,
  spawnOptionNames,
} from "./sandbox-option-names.js";
import type { SandboxOptions } from "./sandbox-options.js";
import type { ExecOptions, ExecResult, SandboxFiles, SandboxProcess, SpawnOptions } from "./sandbox-types.js";
import { queueClose } from "./start-queue.js";

let construct: (opened: OpenedSandbox) => Sandbox;

/**
 * Makes a `Sandbox` of what `openSandbox` opened. Not exported by the package: it is for the command line,
 * which loads this module while the container starts, and for tests that break the stream.
 */
export function sandboxFrom(opened: OpenedSandbox): Sandbox {
  return construct(opened);
}

/**
 * One container in which commands run under a policy that the kernel confirmed. Close it, or use
 * `await using`. If this process dies, the container ends by itself when its lease runs out.
 *
 * Errors of every method: `sandbox.gone` (with a `reason`) when the container has ended, `protocol.invalid`
 * when its runner was tampered with. What a command does is never an error.
 */
export class Sandbox {
  /** The session's id, also on the container's `brig.session` label. */
  readonly id: string;
  readonly containerId: string;
  /** What the kernel said about the policy before the first command ran. */
  readonly proof: Proof;
  readonly image: string;
  /** Where commands start: the workspace at the host's own path, or `/` without one. */
  readonly workingDirectory: string;
  readonly files: SandboxFiles;
  readonly #opened: OpenedSandbox;
  readonly #context: CommandContext;
  readonly #channelsUsedByProof: number;
  #receipt: Receipt | undefined;
  #closing: Promise<Receipt> | undefined;

  static {
    construct = (opened) => new Sandbox(opened);
  }

  private constructor(opened: OpenedSandbox) {
    const { plan, link } = opened;
    this.id = plan.sessionId;
    this.containerId = opened.containerId;
    this.proof = opened.proof;
    this.image = plan.image;
    this.workingDirectory = plan.workingDirectory;
    this.#opened = opened;
    this.#channelsUsedByProof = link.channelCount;
    this.#context = {
      link,
      cwd: plan.workingDirectory,
      env: commandEnvironment(plan),
      onStuck: () => this.#endStuck(),
    };
    this.files = sandboxFiles(this.#context);
    link.onGone = () => void this.#closeOrWarn();
  }

  /**
   * Creates and starts the container, and proves the policy. Errors: `engine.unreachable`, `engine.too-old`,
   * `engine.failed`, `image.missing`, `usage.invalid`, `policy.invalid`, `policy.not-enforced` when the
   * kernel's answer differs from the policy, `workspace.invalid`, or the signal's reason. A failure leaves
   * nothing behind.
   */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    refuseUnknownOptions(options, sandboxOptionNames, { of: "Sandbox.create", meant: sandboxOptionsMeant });
    return new Sandbox(await createSandbox(options));
  }

  /**
   * Runs a program to its end. A non-zero exit, a timeout and a missing program are results. Errors:
   * `exec.invalid`, `exec.bad-cwd`, or the signal's reason after an abort.
   */
  exec(argv: readonly string[], options: ExecOptions & { encoding: "buffer" }): Promise<ExecResult<Buffer>>;
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult<string | Buffer>> {
    refuseUnknownOptions(options, execOptionNames, { of: "sandbox.exec" });
    return await exec(this.#context, argv, options);
  }

  /** Starts a program and returns its streams. If it fails to start, its `exit` says why. */
  async spawn(argv: readonly string[], options: SpawnOptions = {}): Promise<SandboxProcess> {
    refuseUnknownOptions(options, spawnOptionNames, { of: "sandbox.spawn" });
    return new RunningProcess(this.#context, argv, options);
  }

  /** Sends a few bytes to the runner and back, which is the least time that any call takes. */
  async ping(): Promise<void> {
    await this.#opened.link.ping();
  }

  /** The connection to the engine, for further sandboxes on it. */
  get engine(): EngineConnection {
    return this.#opened.engine;
  }

  /**
   * Ends every process and removes the container, unless it was created with `keep`. The receipt lists files
   * that the session left on the host and that may run by themselves later. Error: `engine.failed` when the
   * engine does not confirm that the container is gone: processes may then still run in it, and the
   * placeholders of protected names stay. May be called again.
   */
  close(): Promise<Receipt> {
    this.#closing ??= queueClose(this.#opened.engine.endpoint, () => this.#release()).catch(
      (error: unknown) => {
        this.#closing = undefined;
        throw error;
      },
    );
    return this.#closing;
  }

  /** As `close`, but a failure is a warning, not to hide an error that is being thrown. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeOrWarn();
  }

  async #closeOrWarn(): Promise<void> {
    await this.close().catch(this.#opened.warn);
  }

  async #release(): Promise<Receipt> {
    const closed = new BrigError("the sandbox was closed", {
      code: "sandbox.gone",
      reason: "closed",
      hint: "create another one",
    });
    // The caller of `close` learns of a failure, so the end of the link needs no second, unasked close.
    this.#opened.link.onGone = () => undefined;
    this.#receipt ??= await this.#makeReceipt(closed);
    const { link, isKept, release } = this.#opened;
    if (isKept) link.close(closed);
    const isEnding = !isKept && link.end(closed);
    await release({ isEnding });
    return this.#receipt;
  }

  async #makeReceipt(closed: BrigError): Promise<Receipt> {
    const { link, plan, isKept } = this.#opened;
    if (isKept) return emptyReceipt("kept");
    // No call was made, so nothing has run.
    if (link.channelCount === this.#channelsUsedByProof) return emptyReceipt();
    link.retire(closed);
    return await makeReceipt(this.#context, plan);
  }

  #endStuck(): void {
    this.#opened.link.close(stuck());
    void this.#closeOrWarn();
  }
}

function stuck(): BrigError {
  return new BrigError("a process tree did not end on SIGKILL, so the container was killed", {
    code: "sandbox.gone",
    reason: "killed",
    hint: "create another sandbox; `brig doctor` may say what is wrong with the engine",
  });
}
