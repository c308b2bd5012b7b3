import type { Readable } from "node:stream";
import type { Client, Transport } from "@modelcontextprotocol/client";
import { neutralise } from "../../../../lib/terminal/terminal.js";
import { beforeAbort } from "../../../../lib/time/before-abort.js";
import { HeadAndTail } from "../../../../sandbox/index.js";
import type { LaunchServer, ServerProcess } from "../server-process.js";
import type { HttpServerSettings, StdioServerSettings } from "../server-settings.js";
import { boundedFetch } from "./bounded-fetch.js";
import { type ClientOptions, createClient } from "./create-client.js";
import { StdioTransport } from "./stdio-transport.js";

/**
 * How long to wait for the answer to the first question: some older servers ignore questions that they do not
 * know.
 */
const MAX_PROBE_MS = 10_000;
/** How long a server may take to confirm that its session is over. */
const POLITE_END_MS = 2000;
/**
 * The server says how long to wait before a broken stream of events is opened again. These are the limits.
 */
const MIN_REOPEN_MS = 250;
const MAX_REOPEN_MS = 60_000;
const unsupportedVersion = -32022;

/** A connection to a server that has completed the handshake. */
export interface Connection {
  readonly client: Client;
  /** Aborts when the connection has ended: because the server ended it, or because `close` was called. */
  readonly ended: AbortSignal;
  /**
   * Why the connection ended, as the end of a sentence that begins with the server's name; null while it is
   * open.
   */
  endReason(): string | null;
  /**
   * Whether the error means that the server no longer knows this session, so that a new connection may help.
   */
  isForgotten(error: unknown): boolean;
  close(): Promise<void>;
}

/** Filled in while a server starts, for the error message if the start fails. */
export interface StartReport {
  /** What is being tried at the moment. */
  stage: "launch" | "initialize" | "tools/list";
  /** The last lines of the server's stderr. */
  lastLines: () => readonly string[];
  /** Why the server ended the connection; null if it did not. */
  fault: () => string | null;
  /**
   * Whether the server is an older one whose program ends when the first message asks for the protocol
   * revision. It then has to be `initialize`.
   */
  isOld: boolean;
  /** Takes a function that ends what has been opened. All of them are called if the start fails. */
  onOpened: (close: () => Promise<void>) => void;
}

export interface StdioConnectionOptions {
  name: string;
  settings: StdioServerSettings;
  launch: LaunchServer;
  signal: AbortSignal;
  client: ClientOptions;
  report: StartReport;
  onWarning: (text: string) => void;
}

/**
 * Starts the server's program and completes the handshake. If the program may have ended because it does not
 * know the newer handshake, it is started a second time with the older one.
 */
export async function connectStdio(options: StdioConnectionOptions): Promise<Connection> {
  const { report, settings, signal } = options;
  const { startupTimeoutMs } = settings;
  const probeMs = Math.min(MAX_PROBE_MS, startupTimeoutMs / 3);
  const first = await launched(options);
  try {
    return await greeted(first, options, { probeMs: report.isOld ? null : probeMs });
  } catch (error) {
    signal.throwIfAborted();
    const isOld = !report.isOld && first.mayBeOld;
    // Such a server knows only the newer handshake, but was too slow to answer it, so the older one was
    // tried. It now gets all the time that a start may take.
    const isSlow = !isOld && isUnsupportedVersion(error);
    if (!isOld && !isSlow) throw error;
    await first.close();
    const connection = await greeted(await launched(options), options, {
      probeMs: isSlow ? startupTimeoutMs : null,
    });
    report.isOld = isOld;
    return connection;
  }
}

function isUnsupportedVersion(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === unsupportedVersion;
}

async function launched({
  name,
  settings,
  launch,
  signal,
  report,
  onWarning,
}: StdioConnectionOptions): Promise<StdioTransport> {
  report.stage = "launch";
  const launching = launch(name, settings.command, { signal });
  let process: ServerProcess;
  try {
    process = await beforeAbort(launching, signal);
  } catch (error) {
    report.onOpened(async () => {
      const late = await launching.catch(() => null);
      await late?.kill();
    });
    throw error;
  }
  const stderr = new StderrTail(process.stderr);
  report.lastLines = () => stderr.lines();
  const transport = new StdioTransport(process, { onWarning });
  report.fault = () => transport.fault;
  report.onOpened(() => transport.close());
  return transport;
}

async function greeted(
  transport: StdioTransport,
  options: StdioConnectionOptions,
  { probeMs }: { probeMs: number | null },
): Promise<Connection> {
  const { report, signal } = options;
  report.stage = "initialize";
  const client = await createClient(options.client, { probeMs });
  await connected(client, transport, signal);
  return {
    client,
    ended: transport.ended,
    endReason: () => transport.endReason,
    isForgotten: () => false,
    close: () => transport.close(),
  };
}

export interface HttpConnectionOptions {
  settings: HttpServerSettings;
  signal: AbortSignal;
  client: ClientOptions;
  report: StartReport;
}

export async function connectHttp({
  settings,
  signal,
  client: options,
  report,
}: HttpConnectionOptions): Promise<Connection> {
  report.stage = "initialize";
  const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
  const over = new AbortController();
  const transport = new StreamableHTTPClientTransport(new URL(settings.url), {
    fetch: boundedFetch(settings),
    reconnectionScheduler: (reopen, delayMs) => {
      const timer = setTimeout(reopen, Math.min(Math.max(delayMs, MIN_REOPEN_MS), MAX_REOPEN_MS));
      return () => clearTimeout(timer);
    },
  });
  failUnanswered(transport);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= closeHttp(transport).finally(() => over.abort());
    return closing;
  };
  report.onOpened(close);
  const client = await createClient(options, { probeMs: settings.startupTimeoutMs });
  await connected(client, transport, signal);
  return {
    client,
    ended: over.signal,
    endReason: () => (over.signal.aborted ? "its connection was closed" : null),
    isForgotten: (error) => transport.sessionId !== undefined && httpStatus(error) === 404,
    close,
  };
}

async function connected(client: Client, transport: Transport, signal: AbortSignal): Promise<void> {
  const connecting = client.connect(transport, { signal });
  await beforeAbort(connecting, signal);
}

/**
 * Makes a request fail as soon as the stream that should bring its answer has ended for good. By itself, the
 * SDK waits for the answer until the time limit of the request.
 */
function failUnanswered(transport: Transport): void {
  const send = transport.send.bind(transport);
  transport.send = (message, options) =>
    send(message, {
      ...options,
      onRequestStreamEnd() {
        options?.onRequestStreamEnd?.();
        if (!("method" in message && "id" in message)) return;
        const error = { code: -32000, message: "the server ended the connection before its answer" };
        // The SDK ignores this if the answer has come.
        transport.onmessage?.({ jsonrpc: "2.0", id: message.id, error });
      },
    });
}

/**
 * Tells the server that the session is over, and closes the connection even if the server does not answer.
 */
async function closeHttp(transport: {
  terminateSession(): Promise<void>;
  close(): Promise<void>;
}): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, POLITE_END_MS);
  });
  await Promise.race([transport.terminateSession().catch(() => undefined), over]);
  clearTimeout(timer);
  await transport.close();
}

/** The status of an answer that made a request fail. */
export function httpStatus(error: unknown): number | undefined {
  const data = error instanceof Error && "data" in error ? error.data : undefined;
  const status = typeof data === "object" && data !== null && "status" in data ? data.status : undefined;
  return typeof status === "number" ? status : undefined;
}

const KEPT_BYTES = 8 * 1024;
const SHOWN_LINES = 6;
const SHOWN_CHARS = 300;

/** Reads everything that a server writes to its stderr, and keeps the last lines for error messages. */
class StderrTail {
  readonly #kept = new HeadAndTail(KEPT_BYTES, 0);

  constructor(stderr: Readable) {
    stderr.on("data", (chunk: Buffer) => this.#kept.push(chunk));
    stderr.on("error", () => undefined);
  }

  /** The last lines, safe to show on a terminal. */
  lines(): string[] {
    const { head, tail } = this.#kept.clone().take();
    return neutralise(Buffer.concat([head, tail]).toString())
      .split("\n")
      .filter((line) => line.trim() !== "")
      .slice(-SHOWN_LINES)
      .map((line) => (line.length > SHOWN_CHARS ? `${line.slice(0, SHOWN_CHARS)}…` : line));
  }
}
