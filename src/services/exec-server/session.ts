import { randomUUID } from "node:crypto";
import { type Shell, shellOf } from "./environment-info.js";
import { FileHandles } from "./files/file-handles.js";
import { FileMethods } from "./files/file-methods.js";
import { ProcessMethods } from "./process-methods.js";
import { type CommonOptions, SandboxSet } from "./sandbox-set.js";
import type { Notify } from "./served-process.js";
import { Workspaces } from "./workspaces.js";

/** Takes the notifications of a session while a client is connected. */
export type Notifications = Notify;

/** The sandboxes, processes and workspaces of one client. A session outlives the client's connection, so that it can be resumed. */
export class Session {
  readonly id = randomUUID();
  readonly workspaces: Workspaces;
  readonly processes: ProcessMethods;
  readonly files: FileMethods;
  readonly handles: FileHandles;
  readonly #sandboxes: SandboxSet;
  #notifications: Notifications | null = null;

  constructor(options: CommonOptions) {
    this.#sandboxes = new SandboxSet(options);
    this.workspaces = new Workspaces(this.#sandboxes);
    this.files = new FileMethods(this.workspaces);
    this.handles = new FileHandles(this.workspaces);
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
    this.handles.closeAll();
  }

  /**
   * Opens a sandbox that sees this directory, and finds the image's shell there. Errors: those of
   * `Sandbox.create`.
   */
  async shell(directory: string): Promise<Shell> {
    const { sandbox } = await this.#sandboxes.toLook(directory);
    return await shellOf(sandbox.files);
  }

  /** Ends every process and removes every sandbox. */
  async close(): Promise<void> {
    this.disconnect();
    this.files.close();
    this.processes.close();
    await this.#sandboxes.close();
  }
}
