import { BrigError } from "../../errors.js";
import type { ForwardedPort, Sandbox } from "../../sandbox/index.js";

const MAX_PORTS = 64;

/** A port of the sandbox that is reachable on this machine. */
export interface PublishedPort {
  /** The port of this machine's 127.0.0.1; 0 for any that is free. */
  hostPort: number;
  sandboxPort: number;
}

/** Names that distinguish a sandbox from others in a list. */
export interface SandboxLabel {
  /** The name or the id of its session; null if it has none. */
  session: string | null;
  /** The command that runs in it. */
  command: string;
}

interface ListedPort {
  port: ForwardedPort;
  forget: () => Promise<void>;
}

/** The ports of one sandbox that are reachable on this machine, and listed for `brig port`. */
export class SandboxPorts implements AsyncDisposable {
  readonly sandbox: Sandbox;
  readonly label: SandboxLabel;
  readonly #brigHome: string;
  readonly #open = new Map<number, ListedPort>();
  #isClosed = false;

  constructor(sandbox: Sandbox, label: SandboxLabel, brigHome: string) {
    this.sandbox = sandbox;
    this.label = label;
    this.#brigHome = brigHome;
  }

  /** Errors: those of `Sandbox.forward`. */
  async open({ sandboxPort, hostPort }: PublishedPort): Promise<ForwardedPort> {
    if (this.#open.size >= MAX_PORTS)
      throw new BrigError(`${MAX_PORTS} ports of this sandbox are open already`, {
        code: "sandbox.port-failed",
        hint: "close one of them: brig port --close PORT",
      });
    const { recordPort } = await import("../../sandbox/index.js");
    const { sandbox } = this;
    const port = await sandbox.forward(sandboxPort, { hostPort });
    const { url } = port;
    const { workingDirectory } = sandbox;
    const place = { sandbox: sandbox.id, sandboxPort, port: port.port, url, workingDirectory, ...this.label };
    this.#open.set(port.port, { port, forget: await recordPort(this.#brigHome, place) });
    if (this.#isClosed) await this.close(port.port);
    return port;
  }

  /** False if there is no such port of this machine. */
  async close(hostPort: number): Promise<boolean> {
    const listed = this.#open.get(hostPort);
    this.#open.delete(hostPort);
    // If removing the record fails, it is removed later, once this process has ended.
    await listed?.forget().catch(() => undefined);
    await listed?.port.close();
    return listed !== undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    for (const hostPort of [...this.#open.keys()]) await this.close(hostPort);
  }
}
