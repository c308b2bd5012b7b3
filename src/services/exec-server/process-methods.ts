import { z } from "zod";
import { isBrigError } from "../../errors.js";
import { MAX_TIMEOUT_MS } from "../../sandbox/index.js";
import { describeOsError, osErrors } from "../../tools/index.js";
import { environmentPolicy, processEnvironment } from "./environment.js";
import { sandboxContext } from "./permissions.js";
import { type Notify, ServedProcess } from "./served-process.js";
import { fileUri } from "./wire/file-uri.js";
import { checkedParams, invalidRequest, RpcError, RpcErrorCode } from "./wire/messages.js";
import type { Workspaces } from "./workspaces.js";

const MAX_PROCESSES = 256;
/** The time for which Codex's own server answers for a process that has ended. */
const ENDED_RETENTION_MS = 30_000;
/** The size of a terminal that Codex starts with. */
const TERMINAL = { rows: 24, cols: 80 };

const processId = z.string().min(1).max(1024);
const base64 = z.base64().transform((text) => Buffer.from(text, "base64"));
const count = z.number().min(0);

const startParams = z.looseObject({
  processId,
  argv: z.array(z.string()).min(1, { error: "argv must not be empty" }),
  cwd: fileUri,
  envPolicy: environmentPolicy.nullish(),
  env: z.record(z.string(), z.string()),
  tty: z.boolean(),
  pipeStdin: z.boolean().nullish(),
  arg0: z.string().nullish(),
  sandbox: sandboxContext.nullish(),
  enforceManagedNetwork: z.boolean().nullish(),
});
const readParams = z.looseObject({
  processId,
  afterSeq: count.nullish(),
  maxBytes: count.nullish(),
  waitMs: count.max(MAX_TIMEOUT_MS).nullish(),
});
const writeParams = z.looseObject({ processId, chunk: base64 });
const signalParams = z.looseObject({ processId, signal: z.literal("interrupt") });
const resizeParams = z.looseObject({
  processId,
  rows: z.int().min(1).max(65_535),
  cols: z.int().min(1).max(65_535),
});
const terminateParams = z.looseObject({ processId });

type Entry = { kind: "starting" } | { kind: "started"; process: ServedProcess };

/** The methods `process/*` for one session. */
export class ProcessMethods {
  readonly #workspaces: Workspaces;
  readonly #notify: Notify;
  readonly #entries = new Map<string, Entry>();
  readonly #expiry = new Set<NodeJS.Timeout>();
  #isClosed = false;

  constructor(workspaces: Workspaces, notify: Notify) {
    this.#workspaces = workspaces;
    this.#notify = notify;
  }

  async start(given: unknown): Promise<object> {
    const params = checkedParams(startParams, given);
    this.#refuse(params);
    this.#entries.set(params.processId, { kind: "starting" });
    try {
      const process = await this.#spawn(params);
      this.#entries.set(params.processId, { kind: "started", process });
      void process.closed.then(() => this.#forgetLater(params.processId));
      return { processId: params.processId };
    } catch (error) {
      this.#entries.delete(params.processId);
      throw error;
    }
  }

  async read(given: unknown): Promise<object> {
    const { processId, afterSeq, maxBytes, waitMs } = checkedParams(readParams, given);
    const process = this.#started(processId);
    return await process.read({
      afterSeq: afterSeq ?? 0,
      maxBytes: maxBytes ?? Number.MAX_SAFE_INTEGER,
      waitMs: waitMs ?? 0,
    });
  }

  async write(given: unknown): Promise<object> {
    const { processId, chunk } = checkedParams(writeParams, given);
    const entry = this.#entries.get(processId);
    if (entry === undefined) return { status: "unknownProcess" };
    if (entry.kind === "starting") return { status: "starting" };
    return { status: (await entry.process.write(chunk)) ? "accepted" : "stdinClosed" };
  }

  async signal(given: unknown): Promise<object> {
    const process = this.#started(checkedParams(signalParams, given).processId);
    if (process.isRunning) await process.interrupt();
    return {};
  }

  async resize(given: unknown): Promise<object> {
    const { processId, rows, cols } = checkedParams(resizeParams, given);
    this.#started(processId).resize({ rows, cols });
    return {};
  }

  /** Answers at once; `process/exited` tells when everything that the process started has ended. */
  async terminate(given: unknown): Promise<object> {
    const entry = this.#entries.get(checkedParams(terminateParams, given).processId);
    if (entry?.kind !== "started" || !entry.process.isRunning) return { running: false };
    // A failure is part of how the process ends.
    entry.process.terminate().catch(() => undefined);
    return { running: true };
  }

  /** Forgets every process. They end with their sandboxes. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#expiry) clearTimeout(timer);
    this.#entries.clear();
  }

  #refuse({ processId, enforceManagedNetwork }: z.infer<typeof startParams>): void {
    if (this.#entries.has(processId)) throw invalidRequest(`process ${processId} already exists`);
    const running = [...this.#entries.values()].filter(
      (entry) => entry.kind === "starting" || entry.process.isRunning,
    );
    if (running.length >= MAX_PROCESSES)
      throw invalidRequest(`${MAX_PROCESSES} processes are running already`);
    if (enforceManagedNetwork === true)
      throw invalidRequest("brig has no managed network yet: turn network_proxy off in config.toml");
  }

  async #spawn(params: z.infer<typeof startParams>): Promise<ServedProcess> {
    const { argv, cwd, tty, pipeStdin, env, envPolicy } = params;
    const { sandbox, need, environment } = await this.#workspaces.sandboxFor(params.sandbox, cwd);
    await refuseMissingDirectory(sandbox, cwd);
    const process = await sandbox.spawn(argv, {
      cwd,
      env: processEnvironment(environment, { policy: envPolicy, env }),
      ...(tty ? { pty: TERMINAL } : {}),
      stdin: tty || pipeStdin === true ? "pipe" : "closed",
    });
    return new ServedProcess(process, {
      id: params.processId,
      hasTerminal: tty,
      hasNetwork: need.network === "full",
      isRestricted: need.base !== "danger-full-access",
      notify: this.#notify,
    });
  }

  #started(processId: string): ServedProcess {
    const entry = this.#entries.get(processId);
    if (entry?.kind === "started") return entry.process;
    const state =
      entry === undefined ? `unknown process id ${processId}` : `process id ${processId} is starting`;
    throw invalidRequest(state);
  }

  #forgetLater(processId: string): void {
    if (this.#isClosed) return;
    const timer = setTimeout(() => {
      this.#entries.delete(processId);
      this.#expiry.delete(timer);
    }, ENDED_RETENTION_MS);
    timer.unref();
    this.#expiry.add(timer);
  }
}

/** Codex refuses to start a process where there is no directory; the text is its own. */
async function refuseMissingDirectory(
  { files }: { files: { stat(path: string): Promise<{ type: string }> } },
  cwd: string,
): Promise<void> {
  const stat = await files.stat(cwd).catch((error: unknown) => {
    if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
    return null;
  });
  if (stat?.type === "directory") return;
  const error = stat === null ? osErrors.ENOENT : osErrors.ENOTDIR;
  throw new RpcError(describeOsError(error), { code: RpcErrorCode.internal });
}
