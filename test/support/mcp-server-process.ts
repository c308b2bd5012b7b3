import { spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { program } from "./cli.js";
import { brigHere } from "./cli-here.js";
import { type ReceivedRequest, type Reply, startResponsesServer } from "./responses-server.js";
import { testProgram } from "./test-program.js";

/** How a server is started. */
export interface McpServerStart {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  /** How long it may take to end when its input has ended. */
  patienceMs: number;
}

/** `directory` is empty, and holds the workspace `ws` and the homes afterwards. */
export async function mcpServerStart(
  kind: "brig" | "codex",
  { directory, url, args = [] }: { directory: string; url: string; args?: string[] },
): Promise<McpServerStart> {
  const cwd = join(directory, "ws");
  const home = join(directory, "home");
  const temporary = join(directory, "tmp");
  for (const path of [cwd, home, temporary]) await mkdir(path, { recursive: true });
  const name = "config.toml";
  await writeFile(join(home, name), configuration(url));
  const env = { ...(process.env as Record<string, string>), TMPDIR: temporary, OPENAI_API_KEY: "none" };
  return kind === "brig"
    ? {
        command: process.execPath,
        args: [program, "mcp-server", ...args],
        cwd,
        env: { ...env, BRIG_HOME: home, CODEX_HOME: join(directory, "no-home") },
        patienceMs: 60_000,
      }
    : {
        command: (await testProgram("codex-mcp-server")).path,
        args: ["mcp-server", ...args],
        cwd,
        env: { ...env, CODEX_HOME: home },
        // After a cancelled call, this server does not end by itself.
        patienceMs: 1000,
      };
}

function configuration(url: string): string {
  return `model = "gpt-5.2"
model_provider = "scripted"
[model_providers.scripted]
name = "scripted"
base_url = "${url}"
wire_api = "responses"
`;
}

export interface WireMessage {
  id?: string | number | null;
  method?: string;
  params?: Record<string, unknown> & {
    msg?: { type: string } & Record<string, unknown>;
    _meta?: { requestId: number; threadId: string };
  };
  result?: Record<string, unknown> & {
    content?: { type: string; text: string }[];
    structuredContent?: { threadId: string; content: string };
    isError?: boolean;
  };
  error?: { code: number; message: string };
}

interface Exit {
  exitCode: number | null;
  signal: string | null;
}

/** A server that runs. */
interface RunningServer {
  pid: number | undefined;
  stdin: Writable;
  stdout: Readable;
  stderr: Readable;
  exited: Promise<Exit>;
  kill(signal: NodeJS.Signals): void;
  /** Ends it together with what it has started. */
  killAll(): void;
}

function spawnServer({ command, args, cwd, env }: McpServerStart): RunningServer {
  // A process group of its own, since Codex is started by a script.
  const child = spawn(command, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"], detached: true });
  const { pid, stdin, stdout, stderr } = child;
  return {
    pid,
    stdin,
    stdout,
    stderr,
    exited: new Promise((resolve, reject) =>
      child.on("close", (exitCode, signal) => resolve({ exitCode, signal })).on("error", reject),
    ),
    kill: (signal) => void child.kill(signal),
    killAll: () => void process.kill(-(pid ?? 0), "SIGKILL"),
  };
}

/** The same, in the process of the test. */
function startServerHere({ args, cwd, env }: McpServerStart): RunningServer {
  const server = brigHere(args.slice(1), { cwd, env, holdsInputOpen: true });
  const { pid, stdin, stdout, stderr, kill } = server;
  const exited = server.then(({ exitCode }) => ({ exitCode, signal: null }));
  return { pid, stdin, stdout, stderr, exited, kill, killAll: () => kill("SIGTERM") };
}

/** A client that sends any line that a test wants, whether or not the protocol allows it. */
export class RawMcpClient {
  readonly messages: WireMessage[] = [];
  readonly exited: Promise<Exit>;
  stderr = "";
  readonly #server: RunningServer;
  readonly #patienceMs: number;
  readonly #waiting = new Set<() => void>();
  #hasExited = false;
  #nextId = 1;

  constructor(start: McpServerStart, { isProcess }: { isProcess: boolean }) {
    this.#patienceMs = start.patienceMs;
    this.#server = isProcess ? spawnServer(start) : startServerHere(start);
    this.exited = this.#server.exited.finally(() => {
      this.#hasExited = true;
      for (const look of this.#waiting) look();
    });
    this.#server.stderr.on("data", (data: Buffer) => {
      this.stderr += data.toString();
    });
    // Writing fails if the server has ended.
    this.#server.stdin.on("error", () => undefined);
    createInterface({ input: this.#server.stdout }).on("line", (line) => {
      this.messages.push(JSON.parse(line));
      for (const look of this.#waiting) look();
    });
  }

  get pid(): number | undefined {
    return this.#server.pid;
  }

  get stdout() {
    return this.#server.stdout;
  }

  /** Sends a message, or any text. */
  send(message: object | string): void {
    const text = typeof message === "string" ? message : JSON.stringify({ jsonrpc: "2.0", ...message });
    this.#server.stdin.write(`${text}\n`);
  }

  /** Waits for the first message that the test accepts. Earlier messages count too. */
  async message(test: (message: WireMessage) => boolean): Promise<WireMessage> {
    for (;;) {
      const found = this.messages.find(test);
      if (found !== undefined) return found;
      if (this.#hasExited) throw new Error(`the server has ended: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        const look = () => {
          this.#waiting.delete(look);
          resolve();
        };
        this.#waiting.add(look);
      });
    }
  }

  /** The `count`-th event of a type. */
  async event(type: string, count = 1): Promise<WireMessage> {
    return await this.message(() => this.events(type).length >= count).then(
      () => this.events(type)[count - 1] as WireMessage,
    );
  }

  events(type?: string): WireMessage[] {
    return this.messages.filter(
      ({ method, params }) => method === "codex/event" && (type === undefined || params?.msg?.type === type),
    );
  }

  /** Sends a request without waiting. */
  begin(method: string, params: object): { id: number; answer: Promise<WireMessage> } {
    const id = this.#nextId++;
    this.send({ id, method, params });
    const answer = this.message((message) => message.id === id && message.method === undefined);
    // A cancelled call gets no answer.
    answer.catch(() => undefined);
    return { id, answer };
  }

  async request(method: string, params: object): Promise<WireMessage> {
    return await this.begin(method, params).answer;
  }

  async initialize(capabilities: object = { elicitation: {} }): Promise<WireMessage> {
    const clientInfo = { name: "test", version: "1" };
    const answer = await this.request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities,
      clientInfo,
    });
    this.send({ method: "notifications/initialized" });
    return answer;
  }

  call(name: string, args: object | undefined, meta?: object): { id: number; answer: Promise<WireMessage> } {
    return this.begin("tools/call", {
      name,
      ...(args === undefined ? {} : { arguments: args }),
      ...(meta === undefined ? {} : { _meta: meta }),
    });
  }

  /** Answers the next question. */
  async answerQuestion(reply: object): Promise<WireMessage> {
    const question = await this.message(({ method }) => method === "elicitation/create");
    this.send({ id: question.id, ...reply });
    return question;
  }

  endInput(): void {
    this.#server.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#server.kill(signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.endInput();
    const patience = setTimeout(() => this.#server.killAll(), this.#patienceMs);
    await this.exited;
    clearTimeout(patience);
  }
}

/** An endpoint and a server that uses it. */
export async function startMcpServer(
  kind: "brig" | "codex",
  options: {
    directory: string;
    replies: readonly Reply[] | ((request: ReceivedRequest) => Reply);
    args?: string[];
    env?: Record<string, string>;
    /** brig runs as a process of its own, as Codex always does, and not in that of the test. Default: false. */
    isProcess?: boolean;
  },
) {
  const endpoint = await startResponsesServer(options.replies);
  const start = await mcpServerStart(kind, { ...options, url: endpoint.url });
  const isProcess = kind === "codex" || options.isProcess === true;
  const client = new RawMcpClient({ ...start, env: { ...start.env, ...options.env } }, { isProcess });
  return {
    client,
    endpoint,
    workspace: start.cwd,
    async [Symbol.asyncDispose]() {
      await client[Symbol.asyncDispose]();
      await endpoint[Symbol.asyncDispose]();
    },
  };
}
