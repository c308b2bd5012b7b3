import type { Engine } from "../docker/engine-types.js";
import { BrigError } from "../errors.js";
import { refuseUnknownOptions } from "../known-options.js";
import { createSandbox } from "./create-sandbox.js";
import { sandboxFiles } from "./files/files.js";
import type { OpenedSandbox } from "./open-sandbox.js";
import { commandEnvironment } from "./plan/image-settings.js";
import { spawn } from "./process/process.js";
import { type CommandSetting, exec } from "./process/run-to-end.js";
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
import { closeInTurn } from "./turns.js";

let construct: (opened: OpenedSandbox) => Sandbox;

/**
 * Returns the `Sandbox` for what `openSandbox` has opened. The package does not export this function: it is for the command line, which
 * loads this module only while the container starts, and for tests that need the stream to the runner.
 */
export function sandboxFrom(opened: OpenedSandbox): Sandbox {
  return construct(opened);
}

/**
 * One container in which commands run under a policy that was read back from the kernel. Close it, or use `await using`;
 * if this process dies the container ends by itself when its lease runs out.
 *
 * Errors of every method: `sandbox.gone` (with a `reason`) when the container has ended, `protocol.invalid` when its
 * runner was tampered with. What a command does is never an error.
 */
export class Sandbox {
  /** The session's id, also on the container's `brig.session` label. */
  readonly id: string;
  readonly containerId: string;
  /** What the kernel said of the policy before the first command ran. */
  readonly proof: Proof;
  readonly image: string;
  /** Where commands start: the workspace at the host's own path, or `/` without one. */
  readonly workingDirectory: string;
  readonly files: SandboxFiles;
  readonly #opened: OpenedSandbox;
  readonly #setting: CommandSetting;
  readonly #channelsOfProof: number;
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
    this.#channelsOfProof = link.channelCount;
    this.#setting = {
      link,
      cwd: plan.workingDirectory,
      env: commandEnvironment(plan),
      onStuck: () => this.#end(stuck()),
    };
    this.files = sandboxFiles(this.#setting);
    link.onGone = () => void this.#closeUnasked();
  }

  /**
   * Creates and starts the container, proves the policy and opens the stream. Errors: `engine.unreachable`,
   * `engine.too-old`, `engine.failed`, `image.missing`, `usage.invalid`, `policy.invalid`, `policy.not-enforced` when the kernel's
   * answer differs from the policy, `workspace.invalid`, or the signal's reason. Nothing is left behind by a failure.
   */
  static async create(options: SandboxOptions = {}): Promise<Sandbox> {
    refuseUnknownOptions(options, sandboxOptionNames, { of: "Sandbox.create", meant: sandboxOptionsMeant });
    return new Sandbox(await createSandbox(options));
  }

  /**
   * Runs a program to its end. A non-zero exit, a timeout, a missing program are results. Errors: `exec.invalid`,
   * `exec.bad-cwd`, the signal's reason when it was aborted.
   */
  exec(argv: readonly string[], options: ExecOptions & { encoding: "buffer" }): Promise<ExecResult<Buffer>>;
  exec(argv: readonly string[], options?: ExecOptions): Promise<ExecResult>;
  async exec(argv: readonly string[], options: ExecOptions = {}): Promise<ExecResult<string | Buffer>> {
    refuseUnknownOptions(options, execOptionNames, { of: "sandbox.exec" });
    return await exec(this.#setting, argv, options);
  }

  /** Starts a program and hands out its streams. It may still fail to start: its `exit` says so. */
  async spawn(argv: readonly string[], options: SpawnOptions = {}): Promise<SandboxProcess> {
    refuseUnknownOptions(options, spawnOptionNames, { of: "sandbox.spawn" });
    return spawn(this.#setting, argv, options);
  }

  /** One byte to the runner and back: the floor under every call. */
  async ping(): Promise<void> {
    await this.#opened.link.ping();
  }

  get engine(): Engine {
    return this.#opened.engine;
  }

  /**
   * Ends every process and removes the container (unless it was created with `keep`). What it gives tells what the session left on the
   * host that runs by itself later. Error: `engine.failed` when the engine does not say that the container is gone; then processes may go on
   * in it, and what keeps protected names from being made stays. May be called again.
   */
  close(): Promise<Receipt> {
    // A step later: closing the link reports that it is gone, and that calls this again.
    this.#closing ??= Promise.resolve()
      .then(() => closeInTurn(this.engine.endpoint, () => this.#release()))
      .catch((error: unknown) => {
        this.#closing = undefined;
        throw error;
      });
    return this.#closing;
  }

  /** As `close`, but what goes wrong is a warning: it must not stand in for the error that may have led here. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closeUnasked();
  }

  async #closeUnasked(): Promise<void> {
    await this.close().catch(this.#opened.warn);
  }

  async #release(): Promise<Receipt> {
    const closed = new BrigError("the sandbox was closed", {
      code: "sandbox.gone",
      reason: "closed",
      hint: "create another one",
    });
    // Who asked is told of what goes wrong.
    this.#opened.link.onGone = () => undefined;
    this.#receipt ??= await this.#leave(closed);
    const { link, isKept, release } = this.#opened;
    if (isKept) link.close(closed);
    const isEnding = !isKept && link.end(closed);
    await release({ isEnding });
    return this.#receipt;
  }

  async #leave(closed: BrigError): Promise<Receipt> {
    const { link, plan, isKept } = this.#opened;
    if (isKept) return emptyReceipt("kept");
    // Nobody has asked for anything, so nothing has run.
    if (link.channelCount === this.#channelsOfProof) return emptyReceipt();
    link.retire(closed);
    return await makeReceipt(this.#setting, plan);
  }

  #end(error: BrigError): void {
    this.#opened.link.close(error);
    void this.#closeUnasked();
  }
}

function stuck(): BrigError {
  return new BrigError("a process tree did not end on SIGKILL, so the container was killed", {
    code: "sandbox.gone",
    reason: "killed",
    hint: "create another sandbox; `brig doctor` may say what is wrong with the engine",
  });
}
