import type { Task } from "../../../batch/index.js";
import { needOfTask } from "../../../batch/index.js";
import type { SandboxLimits, SandboxMode } from "../../../sandbox/index.js";
import { loadPolicy } from "../../../sandbox/index.js";
import type { RemoteSandboxOptions } from "../wire/schemas.js";
import type { Need } from "./machine-room.js";

/** What sandboxes get whose clients say nothing. */
export interface UsualSandbox {
  mode: SandboxMode;
  /** In place of the mode's. */
  limits?: SandboxLimits | undefined;
}

/** For brig, a shell and a small program, where nobody has said how much there is to be. */
const LITTLE_MEMORY_MB = 256;
const MEBIBYTE = 1024 ** 2;

/** What sandboxes take of the machine, and of what their clients may have. */
export class Needs {
  readonly #usual: UsualSandbox;
  readonly #limitsOfModes = new Map<SandboxMode, Promise<Need["limits"]>>();

  constructor(usual: UsualSandbox) {
    this.#usual = usual;
  }

  /** Error: `policy.invalid`. */
  async ofSandbox({ mode = this.#usual.mode, limits }: RemoteSandboxOptions): Promise<Need> {
    const asked = { ...this.#usual.limits, ...limits };
    const { cpus, memoryMb } = await this.#limitsOf(mode);
    return {
      cpus: asked.cpus ?? 0,
      memoryMb: asked.memoryMb ?? LITTLE_MEMORY_MB,
      limits: { cpus: asked.cpus ?? cpus, memoryMb: asked.memoryMb ?? memoryMb },
    };
  }

  /** Error: `policy.invalid`. */
  async ofTask(task: Task): Promise<Need> {
    const { cpus, memoryBytes } = needOfTask(task);
    const { limits } = task.environment;
    const usual = await this.#limitsOf("danger-full-access");
    return {
      cpus,
      memoryMb: memoryBytes / MEBIBYTE,
      limits: { cpus: limits.cpus ?? usual.cpus, memoryMb: limits.memoryMb ?? usual.memoryMb },
    };
  }

  async #limitsOf(mode: SandboxMode): Promise<Need["limits"]> {
    const known = this.#limitsOfModes.get(mode) ?? loadPolicy(mode).then(({ policy }) => policy.limits);
    this.#limitsOfModes.set(mode, known);
    return await known;
  }
}
