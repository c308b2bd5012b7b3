import { PassThrough } from "node:stream";
import { pathToFileURL } from "node:url";
import { readEnvironment } from "../../src/lib/env.js";
import type { CommonOptions } from "../../src/services/exec-server/sandbox-set.js";
import { serveStdio } from "../../src/services/exec-server/serve-stdio.js";
import { testEngine } from "./engine.js";
import { testRuntime } from "./runtime-differences.js";
import { temporaryDirectory, toolboxUnderTest } from "./sandbox.js";

export interface RpcFailure {
  code: number;
  message: string;
}

interface Incoming {
  id?: number | string;
  method?: string;
  params?: Record<string, unknown>;
  result?: Record<string, unknown>;
  error?: RpcFailure;
}

/** A client of an exec-server that knows nothing of it but the protocol. */
export class ExecClient {
  readonly notifications: { method: string; params: Record<string, unknown> }[] = [];
  /** Errors that answer no request. */
  readonly strays: RpcFailure[] = [];
  readonly #send: (text: string) => void;
  readonly #waiting = new Map<number | string, (message: Incoming) => void>();
  #nextId = 1;
  #listeners = new Set<() => void>();

  constructor(send: (text: string) => void) {
    this.#send = send;
  }

  receive(text: string): void {
    const message: Incoming = JSON.parse(text);
    if (message.id === -1 && message.error) this.strays.push(message.error);
    else if (message.id !== undefined) {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    } else this.notifications.push({ method: message.method ?? "", params: message.params ?? {} });
    for (const listener of this.#listeners) listener();
  }

  sendText(text: string): void {
    this.#send(text);
  }

  /** The result of a call, or its error. */
  async ask(
    method: string,
    params: object = {},
  ): Promise<{ result?: Record<string, unknown>; error?: RpcFailure }> {
    const id = this.#nextId++;
    const answer = new Promise<Incoming>((resolve) => this.#waiting.set(id, resolve));
    this.#send(JSON.stringify({ id, method, params }));
    return await answer;
  }

  async call(method: string, params: object = {}): Promise<Record<string, unknown>> {
    const { result, error } = await this.ask(method, params);
    if (result === undefined) throw new Error(`${method}: ${error?.code} ${error?.message}`);
    return result;
  }

  async initialize(resumeSessionId: string | null = null): Promise<string> {
    const { sessionId } = await this.call("initialize", { clientName: "test", resumeSessionId });
    this.#send(JSON.stringify({ method: "initialized", params: {} }));
    return String(sessionId);
  }

  /** Resolves when what has come in is enough. */
  async until(isEnough: () => boolean): Promise<void> {
    while (!isEnough())
      await new Promise<void>((resolve) => {
        const listener = () => {
          this.#listeners.delete(listener);
          resolve();
        };
        this.#listeners.add(listener);
      });
  }

  of(processId: string, method: string): Record<string, unknown>[] {
    return this.notifications
      .filter((one) => one.method === method && one.params.processId === processId)
      .map(({ params }) => params);
  }

  output(processId: string, stream?: string): string {
    const chunks = this.of(processId, "process/output").filter(
      (one) => stream === undefined || one.stream === stream,
    );
    return Buffer.concat(chunks.map(({ chunk }) => Buffer.from(String(chunk), "base64"))).toString();
  }

  async closed(processId: string): Promise<{ exitCode: unknown; output: string; sandboxDenied: unknown }> {
    await this.until(() => this.of(processId, "process/closed").length > 0);
    const [exit] = this.of(processId, "process/exited");
    return { exitCode: exit?.exitCode, output: this.output(processId), sandboxDenied: exit?.sandboxDenied };
  }
}

export interface StdioClient extends AsyncDisposable {
  client: ExecClient;
  /** Ends the client's side, as a client does that is killed. */
  hangUp(): void;
  /** Resolves when the server has closed everything. */
  ended: Promise<void>;
}

export async function commonOptions(): Promise<CommonOptions> {
  return {
    engine: await testEngine(),
    environment: readEnvironment(),
    runtime: testRuntime,
    toolboxVolume: await toolboxUnderTest(),
  };
}

/** A server of this process, and a client of it, as over standard input and output. */
export async function openStdioClient(
  directory: string,
  options: Partial<CommonOptions> = {},
): Promise<StdioClient> {
  const input = new PassThrough();
  const output = new PassThrough();
  const client = new ExecClient((text) => void input.write(`${text}\n`));
  let rest = "";
  output.on("data", (data: Buffer) => {
    const lines = (rest + data.toString("latin1")).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) client.receive(Buffer.from(line, "latin1").toString());
  });
  const stopped = new AbortController();
  const ended = serveStdio({
    input,
    output,
    sandbox: { ...(await commonOptions()), ...options },
    directory,
    signal: stopped.signal,
  });
  ended.catch(() => undefined);
  return {
    client,
    hangUp: () => void input.end(),
    ended,
    async [Symbol.asyncDispose]() {
      input.end();
      await ended;
    },
  };
}

export interface WorkspaceClient extends AsyncDisposable {
  client: ExecClient;
  workspace: string;
}

/** A client that is initialized, in a temporary workspace of its own. */
export async function openWorkspaceClient(): Promise<WorkspaceClient> {
  const directory = await temporaryDirectory();
  const served = await openStdioClient(directory.path);
  await served.client.initialize();
  return {
    client: served.client,
    workspace: directory.path,
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}

export function uri(path: string): string {
  return pathToFileURL(path).href;
}

type Mode = "read-only" | "workspace-write" | "danger-full-access";

/** The permission profile that Codex 0.169 sends in a mode. */
export function sandboxOf(
  mode: Mode,
  workspace: string,
  { network = "restricted", entries = [] as object[] } = {},
): object | null {
  if (mode === "danger-full-access") return null;
  const special = (kind: string, access: string, more: object = {}) => ({
    path: { type: "special", value: { kind, ...more } },
    access,
  });
  const writes = [
    special("project_roots", "write"),
    special("slash_tmp", "write"),
    special("tmpdir", "write"),
    ...[".git", ".agents", ".codex", ".aws"].map((subpath) => ({
      ...special("project_roots", "read", { subpath }),
      missing_path_behavior: "skip",
    })),
  ];
  return {
    permissions: {
      type: "managed",
      file_system: {
        type: "restricted",
        entries: [special("root", "read"), ...(mode === "workspace-write" ? writes : []), ...entries],
      },
      network,
    },
    cwd: uri(workspace),
    workspaceRoots: [uri(workspace)],
    windowsSandboxLevel: "disabled",
    windowsSandboxProxySettingsMode: "reconcile",
    useLegacyLandlock: false,
  };
}

/** What Codex sends to start a command. */
export function startParams(
  processId: string,
  command: string,
  {
    workspace,
    mode = "workspace-write",
    ...more
  }: { workspace: string; mode?: Mode } & Record<string, unknown>,
): object {
  return {
    processId,
    metadata: { threadId: "t", toolCallId: "c" },
    argv: ["/bin/bash", "-c", command],
    cwd: uri(workspace),
    envPolicy: { inherit: "all", ignoreDefaultExcludes: true, exclude: [], set: {}, includeOnly: [] },
    env: { TERM: "dumb" },
    tty: false,
    pipeStdin: false,
    arg0: null,
    sandbox: sandboxOf(mode, workspace),
    enforceManagedNetwork: false,
    managedNetwork: null,
    ...more,
  };
}
