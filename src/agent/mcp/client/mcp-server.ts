import type { Client } from "@modelcontextprotocol/client";
import { BrigError } from "../../../errors.js";
import { isTooDeep } from "../../../lib/json/nesting.js";
import { beforeAbort } from "../../../lib/time/before-abort.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import { cutText } from "../../../sandbox/index.js";
import type { McpServerState } from "../../../tools/index.js";
import { CallLimit } from "./connection/call-limit.js";
import { type Connection, connectHttp, connectStdio, type StartReport } from "./connection/connection.js";
import type { ClientOptions } from "./connection/create-client.js";
import { type AskingCall, Questions } from "./connection/elicitation.js";
import { requestError, shownName, startError, timeoutError } from "./failures.js";
import type { LaunchServer } from "./server-process.js";
import type { McpServerSettings } from "./server-settings.js";
import { type ListedTool, listTools } from "./tool-list/list-tools.js";
import { ToolListWatch } from "./tool-list/tool-list-watch.js";

const MAX_INSTRUCTIONS_BYTES = 16 * 1024;

export interface McpServerOptions {
  launch: LaunchServer;
  version: string;
  onWarning: (message: string) => void;
  /** Called when the tools or the state have changed. */
  onChange: () => void;
}

/** A request to a server. */
export interface McpRequest<T> {
  /** Names the request in error messages, such as `the tool "search"`. */
  asked: string;
  limitMs: number;
  signal: AbortSignal | undefined;
  elicit: AskingCall["elicit"];
  send(client: Client, signal: AbortSignal): Promise<T>;
}

/** One configured server: starts it, starts it again when it has ended, and sends it requests. */
export class McpServer {
  readonly name: string;
  readonly settings: McpServerSettings;
  readonly #options: McpServerOptions;
  readonly #questions: Questions;
  readonly #starts = new StartLimit();
  readonly #closed = new AbortController();
  readonly #closing = new Set<Promise<void>>();
  readonly #clientOptions: ClientOptions;
  #connection: Connection | undefined;
  #starting: Promise<Connection> | undefined;
  #lastLines: StartReport["lastLines"] = () => [];
  #isOld = false;
  #status: McpServerState["status"] = "starting";
  #error: BrigError | null = null;
  #instructions: string | null = null;
  #tools: readonly ListedTool[] = [];

  constructor(name: string, settings: McpServerSettings, options: McpServerOptions) {
    this.name = name;
    this.settings = settings;
    this.#options = options;
    this.#questions = new Questions(name);
    this.#clientOptions = {
      version: options.version,
      questions: this.#questions,
      onToolsChanged: () => undefined,
    };
  }

  get state(): McpServerState {
    return {
      name: this.name,
      status: this.#status,
      error: this.#error,
      required: this.settings.required,
      toolCount: this.tools.length,
      instructions: this.#instructions,
    };
  }

  /** The enabled tools. They are also offered after the server has ended, because a call starts it again. */
  get tools(): readonly ListedTool[] {
    const { enabledTools, disabledTools } = this.settings;
    return this.#tools.filter(
      ({ name }) => (enabledTools === null || enabledTools.includes(name)) && !disabledTools.includes(name),
    );
  }

  /** Starts the server if it is not running. Error: `mcp.start-failed`, which `state` shows from then on. */
  async running(): Promise<Connection> {
    if (this.#closed.signal.aborted) throw this.#closedError();
    if (this.#connection?.endReason() === null) return this.#connection;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = undefined;
    });
    return await this.#starting;
  }

  /**
   * Sends a request once. Only if the server answers that it does not know the session any more, the request
   * is sent a second time, in a new session: such a server has not carried it out.
   */
  async request<T>(request: McpRequest<T>): Promise<T> {
    const { signal } = request;
    signal?.throwIfAborted();
    const connection = await beforeAbort(this.running(), signal);
    try {
      return await this.#send(connection, request);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof ForgottenSession)) throw error;
      await this.#forget(connection);
      return await this.#send(await beforeAbort(this.running(), signal), request, { isAgain: true });
    }
  }

  async close(): Promise<void> {
    this.#closed.abort();
    this.#status = "closed";
    await this.#starting?.catch(() => undefined);
    if (this.#connection !== undefined) this.#end(() => this.#connection?.close());
    await Promise.all(this.#closing);
  }

  async #send<T>(connection: Connection, request: McpRequest<T>, { isAgain = false } = {}): Promise<T> {
    const { asked, limitMs, signal, elicit, send } = request;
    using limit = new CallLimit(limitMs, signal);
    const done = this.#questions.add({ elicit, signal: limit.signal, pause: () => limit.pause() });
    try {
      const result = await beforeAbort(send(connection.client, limit.signal), limit.signal);
      if (isTooDeep(result)) throw new Error("its answer is nested too deeply");
      return result;
    } catch (error) {
      if (limit.isOver) throw timeoutError(this.name, asked, limitMs);
      signal?.throwIfAborted();
      if (this.#closed.signal.aborted) throw this.#closedError();
      if (!isAgain && connection.isForgotten(error))
        throw new ForgottenSession("its session has ended", { cause: error });
      const endReason = connection.endReason();
      const lines = endReason === null ? [] : this.#lastLines();
      throw requestError({ server: this.name, asked, cause: error, endReason, lines });
    } finally {
      done();
    }
  }

  async #start(): Promise<Connection> {
    const { startupTimeoutMs } = this.settings;
    if (!this.#starts.mayStart()) throw this.#tooManyStarts();
    this.#status = "starting";
    const opened: (() => Promise<void>)[] = [];
    const report: StartReport = {
      stage: "launch",
      lastLines: () => [],
      fault: () => null,
      isOld: this.#isOld,
      onOpened: (close) => opened.push(close),
    };
    using limit = new TimeLimit(startupTimeoutMs, this.#closed.signal);
    try {
      const connection = await this.#connect(limit.signal, report);
      report.stage = "tools/list";
      await this.#adopt(connection, limit.signal);
      this.#lastLines = report.lastLines;
      this.#status = "ready";
      this.#error = null;
      this.#watch(connection);
      return connection;
    } catch (cause) {
      const fault = report.fault();
      for (const close of opened) this.#end(close);
      if (this.#closed.signal.aborted) throw this.#closedError();
      const failed = { server: this.name, settings: this.settings, report, cause, fault };
      const error = startError({ ...failed, isTimedOut: limit.isOver });
      this.#fail(error);
      throw error;
    } finally {
      this.#isOld = report.isOld;
      this.#options.onChange();
    }
  }

  async #connect(signal: AbortSignal, report: StartReport): Promise<Connection> {
    const { settings, name } = this;
    const common = { signal, report };
    const client = { ...this.#clientOptions, onToolsChanged: () => watch?.changed() };
    let watch: ToolListWatch | undefined;
    const connection =
      settings.kind === "http"
        ? await connectHttp({ ...common, settings, client })
        : await connectStdio({
            ...common,
            name,
            settings,
            client,
            launch: this.#options.launch,
            onWarning: (text) => this.#warn(text),
          });
    watch = new ToolListWatch(connection, (limit) => this.#list(connection, limit));
    return connection;
  }

  async #adopt(connection: Connection, signal: AbortSignal): Promise<void> {
    const instructions = connection.client.getInstructions();
    this.#instructions = instructions === undefined ? null : cutText(instructions, MAX_INSTRUCTIONS_BYTES);
    await beforeAbort(this.#list(connection, signal), signal);
    this.#connection = connection;
  }

  async #list(connection: Connection, signal: AbortSignal): Promise<void> {
    const offersTools = connection.client.getServerCapabilities()?.tools !== undefined;
    const onWarning = (text: string) => this.#warn(text);
    this.#tools = offersTools ? await listTools(connection.client, { signal, onWarning }) : [];
    if (this.#connection === connection) this.#options.onChange();
  }

  #watch(connection: Connection): void {
    connection.ended.addEventListener("abort", () => {
      if (this.#connection !== connection || this.#closed.signal.aborted) return;
      this.#end(() => connection.close());
      const reason = connection.endReason() ?? "its connection was closed";
      const message = `the MCP server ${shownName(this.name)} has ended: ${reason}`;
      this.#fail(new BrigError(message, { code: "mcp.failed", hint: "the next call starts it again" }));
      this.#options.onChange();
    });
  }

  async #forget(connection: Connection): Promise<void> {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    this.#end(() => connection.close());
  }

  #fail(error: BrigError): void {
    this.#status = "failed";
    this.#error = error;
  }

  #tooManyStarts(): BrigError {
    const reason = this.#error?.message ?? "it ended each time";
    return new BrigError(
      `the MCP server ${shownName(this.name)} is not started again so soon, after ${this.#starts.max} starts in a minute: ${reason}`,
      { code: "mcp.start-failed", hint: "mend the server, or call it again in a minute", cause: this.#error },
    );
  }

  #closedError(): BrigError {
    return new BrigError(`the MCP server ${shownName(this.name)} is closed`, {
      code: "mcp.failed",
      hint: "the session has ended",
    });
  }

  #warn(text: string): void {
    this.#options.onWarning(`the MCP server ${shownName(this.name)} ${text}`);
  }

  /** Closes something in the background. The method `close` waits until that is done. */
  #end(close: () => Promise<void> | undefined): void {
    const closing = Promise.resolve(close()).catch((error: unknown) => {
      this.#warn(`could not be ended: ${error instanceof Error ? error.message : String(error)}`);
    });
    const tracked: Promise<void> = closing.finally(() => this.#closing.delete(tracked));
    this.#closing.add(tracked);
  }
}

class ForgottenSession extends Error {}

const MAX_STARTS = 3;
const MINUTE_MS = 60_000;

/** Allows three starts of a server in a minute, for servers that end again and again. */
class StartLimit {
  readonly max = MAX_STARTS;
  readonly #clock: () => number;
  #starts: number[] = [];

  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock;
  }

  mayStart(): boolean {
    const now = this.#clock();
    this.#starts = this.#starts.filter((at) => now - at < MINUTE_MS);
    if (this.#starts.length >= MAX_STARTS) return false;
    this.#starts.push(now);
    return true;
  }
}
