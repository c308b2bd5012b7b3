import { BrigError } from "../../../errors.js";
import type { ResumedCommand, Sandbox, SandboxProcess, SpawnOptions } from "../../../sandbox/index.js";
import type { NotedCommands } from "../../serve/processes/process-table.js";

/** Marks the notes of commands that end with their clients. */
const PURPOSE = "connected";

/** How long the client of a command has to come to the next owner. It looks for that many times a second; one that was killed as well never comes. */
const CLIENT_MS = 6_000;

/** A command whose client was connected with an owner that was killed. */
interface LeftCommand extends Pick<ResumedCommand, "process" | "lost" | "inputBytes" | "options"> {
  timer: NodeJS.Timeout;
}

/** Commands that end with their clients, and so go on with another owner only if these do. */
export class ConnectedCommands {
  readonly #sandbox: Sandbox;
  /** Undefined where the sandbox ends with its owner. */
  readonly #noted: NotedCommands | undefined;
  readonly #running = new Set<string>();
  readonly #left = new Map<string, LeftCommand>();

  constructor(sandbox: Sandbox, noted: NotedCommands | undefined) {
    this.#sandbox = sandbox;
    this.#noted = noted;
  }

  /** Starts one. Without an id nobody can go on with it. Errors: those of `sandbox.spawn`; `serve.refused` for an id that another one has. */
  async start(
    id: string | null | undefined,
    argv: readonly string[],
    options: SpawnOptions,
  ): Promise<SandboxProcess> {
    if (this.#noted === undefined || typeof id !== "string") return await this.#sandbox.spawn(argv, options);
    if (this.#running.has(id) || this.#left.has(id))
      throw new BrigError("another command has this id", { code: "serve.refused" });
    const starting = this.#noted.spawn({ name: id, argv, options, about: { purpose: PURPOSE } });
    this.#running.add(id);
    return await starting.catch((error) => {
      this.#running.delete(id);
      throw error;
    });
  }

  /** Its client knows all of it, or has gone. */
  forget(id: string | null | undefined): void {
    if (typeof id === "string" && this.#running.delete(id)) this.#noted?.forget(id);
  }

  /** Waits for the clients of those that another owner has started. Gives the other commands back. `hold` keeps the sandbox from being idle. */
  resume(commands: readonly ResumedCommand[], hold: () => Disposable): ResumedCommand[] {
    return commands.filter(({ name, about, ...command }) => {
      if ((about as { purpose: string | null }).purpose !== PURPOSE) return true;
      const held = hold();
      const { process } = command;
      void process.exit.catch(() => undefined).finally(() => held[Symbol.dispose]());
      const timer = setTimeout(() => {
        this.#left.delete(name);
        this.#noted?.forget(name);
        void process.kill().catch(() => undefined);
        // Nobody reads what it still prints.
        for (const output of [process.stdout, process.stderr]) output?.resume();
      }, CLIENT_MS);
      this.#left.set(name, { ...command, timer });
      return false;
    });
  }

  /** Goes on with one for its client. Error: `sandbox.gone` for one that is not known. */
  claim(id: string): Omit<LeftCommand, "timer"> {
    const left = this.#left.get(id);
    if (left === undefined)
      throw new BrigError("the command has ended with the process that kept its sandbox, which was killed", {
        code: "sandbox.gone",
        reason: "killed",
        hint: "the sandbox itself may run on: brig ps says so",
      });
    clearTimeout(left.timer);
    this.#left.delete(id);
    this.#running.add(id);
    return left;
  }
}
