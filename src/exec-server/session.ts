import { randomUUID } from "node:crypto";
import { FileMethods } from "./file-methods.js";
import { ProcessMethods } from "./process-methods.js";
import { type CommonOptions, SandboxSet } from "./sandbox-set.js";
import type { Notify } from "./served-process.js";
import { Workspaces } from "./workspaces.js";

/** Takes the notifications of a session while a client is connected. */
export type Notifications = Notify;

/** What one client has: its sandboxes, its processes, its workspaces. It outlives the client's connection, so that it can be resumed. */
export class Session {
  readonly id = randomUUID();
  readonly workspaces: Workspaces;
  readonly processes: ProcessMethods;
  readonly files: FileMethods;
  readonly #sandboxes: SandboxSet;
  #notifications: Notifications | null = null;

  constructor(options: CommonOptions) {
    this.#sandboxes = new SandboxSet(options);
    this.workspaces = new Workspaces(this.#sandboxes);
    this.files = new FileMethods(this.workspaces);
    // While nobody is connected output is only kept, and what is too old is dropped.
    this.processes = new ProcessMethods(this.workspaces, async (method, params) => {
      await this.#notifications?.(method, params);
    });
  }

  get isConnected(): boolean {
    return this.#notifications !== null;
  }

  connect(notifications: Notifications): void {
    this.#notifications = notifications;
  }

  disconnect(): void {
    this.#notifications = null;
  }

  /** Ends every process and removes every sandbox. */
  async close(): Promise<void> {
    this.#notifications = null;
    this.processes.close();
    await this.#sandboxes.close();
  }
}
