import { randomInt } from "node:crypto";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { BrigError } from "../../../errors.js";
import { systemReason } from "../../../lib/errno.js";
import { fullDiskOfBrig } from "../../../lib/files/full-disk.js";
import { type Owner, ownerState, readHostProcesses } from "../../../lib/owner.js";
import type {
  CloseOptions,
  OnCopied,
  Receipt,
  ResumedCommand,
  Sandbox,
  SandboxAbout,
} from "../../../sandbox/index.js";
import { aboutOf, disposeFirst, forkLasting } from "../../../sandbox/index.js";
import { takeOver } from "../../serve/kept/take-over.js";
import { type OutputChunk, OutputLog } from "../../serve/processes/output-log.js";
import { notedIn } from "../../serve/processes/process-table.js";
import { Capacity } from "../../serve/sandboxes/capacity.js";
import { SandboxSet } from "../../serve/sandboxes/sandbox-set.js";
import type { OpenedPlace, ServedSandbox } from "../../serve/sandboxes/served-sandbox.js";
import {
  type EndReason,
  findLasting,
  type LastingRecord,
  lastingDirectory,
  readLasting,
  removeLasting,
  requireName,
  writeLasting,
  writeLog,
} from "../home/lasting-records.js";
import { keptDirectory, keptNames, readRequest, removeKept, writeRequest } from "../home/up-request.js";
import { encodeFrame, FRAME } from "../wire/frames.js";
import type { UpRequest } from "../wire/messages.js";
import { CommandPoints } from "./command-points.js";
import { ConnectedCommands } from "./connected-commands.js";
import { EgressFeed } from "./egress-feed.js";
import { endedError } from "./ended-error.js";
import { FIRST_WORDS, SECOND_WORDS } from "./name-words.js";
import { SharedShell } from "./shared-shell.js";

/** Everybody who reaches the owner is the same user. */
export const LOCAL_CLIENT = "local";

/** For a sandbox without a limit: a hundred years, because records have a date and no word for never. */
export const UNLIMITED_MS = 100 * 365 * 24 * 3_600_000;

export interface OpenedLasting {
  sandbox: Sandbox;
  about: SandboxAbout;
  /** Where commands start. */
  workingDirectory: string;
  idleMs: number;
  maxLifeMs: number;
}

/** Opens a sandbox as a client's arguments say. `tell` passes on what is printed meanwhile; what another owner needs is kept in the directory. */
export type OpenLasting = (request: UpRequest, how: LastingPlace) => Promise<OpenedLasting>;

/** Goes on with a sandbox that a killed owner has opened. Errors: `sandbox.gone`; those of a start. */
export type ResumeLasting = (
  request: UpRequest,
  how: LastingPlace,
) => Promise<OpenedLasting & { commands: ResumedCommand[] }>;

/** Ends what a killed owner has left of a sandbox with which nobody is to go on. Error: `engine.failed`. */
export type DiscardLasting = (request: UpRequest, how: LastingPlace) => Promise<void>;

export interface LastingPlace {
  directory: string;
  signal: AbortSignal;
  tell: (text: string) => void;
}

/** A sandbox that the owner keeps. */
export interface HeldSandbox {
  record: LastingRecord;
  opened: OpenedLasting;
  served: ServedSandbox;
  points: CommandPoints;
  egress: EgressFeed;
  /** The latest output of all its commands. */
  log: OutputLog;
  shell: SharedShell;
  connected: ConnectedCommands;
}

interface TakingOver {
  resume: ResumeLasting;
  discard: DiscardLasting;
  signal: AbortSignal;
}

interface LastingSetOptions {
  brigHome: string;
  owner: Owner;
  /** For what goes wrong while nobody waits for it. */
  onWarning: (error: unknown) => void;
}

/** The sandboxes with names of one `$BRIG_HOME`: those that run, and the records of those that have ended. */
export class LastingSet {
  /** Those that run, by their ids, for the requests that every service answers. */
  readonly sandboxes: SandboxSet;
  readonly #options: LastingSetOptions;
  readonly #held = new Map<string, HeldSandbox>();
  /** The names of those that are being opened. */
  readonly #reserved = new Set<string>();
  /** The names of those of a killed owner that are not taken over yet, and what ends when they are. */
  readonly #left = new Map<string, Latch>();
  /** Why a sandbox is being closed, if somebody asked for that, and who is told how much of its changes is stored. */
  readonly #asked = new Map<string, { reason: EndReason } & CloseOptions>();
  readonly #receipts = new Map<string, Receipt>();
  #isClosed = false;

  constructor(options: LastingSetOptions) {
    this.#options = options;
    const limits = { maxPlaces: 1, maxPerClient: 1, maxWaiting: 0 };
    this.sandboxes = new SandboxSet({
      capacity: new Capacity(limits),
      open: async () => await Promise.reject(new TypeError("lasting sandboxes are opened by their names")),
      idleMs: UNLIMITED_MS,
      maxLifeMs: UNLIMITED_MS,
      onWarning: options.onWarning,
    });
  }

  /** How many run, or are about to. */
  get heldCount(): number {
    return this.#held.size + this.#reserved.size + this.#left.size;
  }

  /**
   * Goes on with the sandboxes of owners that were killed. Of those with which that cannot be it notes that they have ended, too, and ends those that were
   * not open yet. If the engine fails, it is asked again later.
   */
  async takeOver(how: TakingOver): Promise<void> {
    await Promise.all([this.#takeOverOpen(how), this.#discardHalfOpen(how)]);
  }

  async #takeOverOpen({ resume, signal }: TakingOver): Promise<void> {
    const { brigHome } = this.#options;
    const processes = await readHostProcesses(hostname());
    const left = readLasting(brigHome).filter(({ state }) => state === "running");
    await Promise.all(
      left.map(async (record) => {
        if ((await ownerState(record.owner, processes)) !== "gone") return;
        const { name } = record;
        this.#left.set(name, new Latch());
        await takeOver({
          take: async () => {
            if (this.#left.has(name)) await this.#takeOver(record, { resume, signal });
            this.#noLongerLeft(name);
          },
          giveUp: () => {
            if (!this.#noLongerLeft(name)) return;
            writeLasting(brigHome, { ...record, state: "stopped", reason: "owner-killed" });
            removeKept(brigHome, name);
          },
          signal,
          onWarning: this.#options.onWarning,
        });
      }),
    );
  }

  /** Nobody was told the names of those that have no record yet, and their clients have heard of a failure. */
  async #discardHalfOpen({ discard, signal }: TakingOver): Promise<void> {
    const { brigHome, onWarning } = this.#options;
    const known = new Set(readLasting(brigHome).map(({ name }) => name));
    const names = keptNames(brigHome).filter((name) => !known.has(name));
    const tell = () => undefined;
    const discarding = names.map(async (name) => {
      const directory = keptDirectory(brigHome, name);
      const request = readRequest(directory);
      const take = async () => {
        // By then somebody may have started another one with this name.
        if (this.#isTaken(name)) return;
        if (request !== null) await discard(request, { directory, signal, tell });
        if (!this.#isTaken(name)) removeKept(brigHome, name);
      };
      await takeOver({ take, giveUp: () => undefined, signal, onWarning });
    });
    await Promise.all(discarding);
  }

  async #takeOver(
    record: LastingRecord,
    { resume, signal }: { resume: ResumeLasting; signal: AbortSignal },
  ): Promise<void> {
    const { brigHome, owner, onWarning } = this.#options;
    const { name } = record;
    const directory = keptDirectory(brigHome, name);
    const request = readRequest(directory);
    if (request === null) throw endedError({ name, reason: "owner-killed" });
    const tell = (text: string) => onWarning(new Error(`${name}: ${text}`));
    const { commands, ...opened } = await resume(request, { directory, signal, tell });
    if (this.#isClosed || !this.#left.has(name)) {
      // It was removed meanwhile, or is to be.
      await opened.sandbox.close();
      throw endedError({ name, reason: "owner-stopped" });
    }
    const livedMs = Date.now() - Date.parse(record.about.createdAt);
    const maxLifeMs = Math.max(1, opened.maxLifeMs - Math.max(0, livedMs));
    const own: LastingRecord = { ...record, owner, about: { ...opened.about } };
    writeLasting(brigHome, own);
    const { served, shell, connected } = this.#hold(own, { ...opened, maxLifeMs });
    served.processes.resume(connected.resume(commands, () => served.hold()));
    shell.resume(served.processes);
  }

  /** Opens a sandbox with this name, or one that nobody has. Errors: `usage.invalid` for a name that is bad or taken; `store.failed`; those of `open`. */
  async open(
    request: UpRequest,
    { open, ...progress }: { open: OpenLasting } & Omit<LastingPlace, "directory">,
  ): Promise<LastingRecord> {
    const { brigHome } = this.#options;
    const { name } = request;
    const chosen = name ?? this.#freeName();
    requireName(chosen);
    if (this.#isTaken(chosen))
      throw new BrigError(`there is a sandbox called ${chosen} already`, {
        code: "usage.invalid",
        hint: `choose another name, or remove that one: brig rm ${chosen}`,
      });
    this.#reserved.add(chosen);
    const directory = keptDirectory(brigHome, chosen);
    try {
      removeKept(brigHome, chosen);
      const named = { ...request, name: chosen };
      this.#recording(() => writeRequest(directory, named));
      return await this.#keep(chosen, await open(named, { ...progress, directory }));
    } catch (error) {
      removeKept(brigHome, chosen);
      throw error;
    } finally {
      this.#reserved.delete(chosen);
    }
  }

  #noLongerLeft(name: string): boolean {
    this.#left.get(name)?.open();
    return this.#left.delete(name);
  }

  /** Resolves when one that a killed owner has left is taken over, or known to have ended. */
  async taken(wanted: string): Promise<void> {
    await this.#left.get(this.find(wanted).name)?.opened;
  }

  /**
   * Starts another sandbox with the same options on a copy of this one's copy-on-write workspace, without its processes. Errors: those of `open`;
   * `workspace.invalid` for a workspace of another kind.
   */
  async fork(
    wanted: string,
    name: string | null,
    { signal, onCopied }: { signal: AbortSignal; onCopied?: OnCopied | undefined },
  ): Promise<LastingRecord> {
    const { record, opened } = this.get(wanted);
    const request = readRequest(keptDirectory(this.#options.brigHome, record.name));
    if (request === null) throw endedError(record);
    const open: OpenLasting = async (_, { directory }) => {
      const sandbox = await forkLasting(opened.sandbox, { lasting: directory, signal, onCopied });
      return { ...opened, sandbox, about: aboutOf(sandbox) };
    };
    return await this.open({ ...request, name, isFork: true }, { open, signal, tell: () => undefined });
  }

  /** One that runs. Errors: `sandbox.unknown`; `engine.failed` if it is not taken over yet; `sandbox.gone` for one that has ended, with the reason. */
  get(wanted: string): HeldSandbox {
    const record = this.find(wanted);
    const held = this.#held.get(record.name);
    if (held !== undefined) return held;
    throw this.#left.has(record.name) ? notTakenOver(record.name) : endedError(record);
  }

  /** One that runs or has ended. Errors: `sandbox.unknown`; `usage.invalid` if several could be meant. */
  find(wanted: string): LastingRecord {
    return findLasting(readLasting(this.#options.brigHome), wanted);
  }

  /** Ends it; its name stays. Null if it has ended already. Error: `engine.failed`, and then it may still run. */
  async stop(wanted: string, options: CloseOptions = {}): Promise<Receipt | null> {
    const record = this.find(wanted);
    const held = this.#held.get(record.name);
    if (this.#left.has(record.name)) throw notTakenOver(record.name);
    if (held === undefined) return null;
    this.#asked.set(record.name, { ...options, reason: "stopped" });
    await this.sandboxes.remove(LOCAL_CLIENT, held.served.id);
    const receipt = this.#receipts.get(record.name) ?? null;
    this.#receipts.delete(record.name);
    return receipt;
  }

  /** Ends it, and forgets its name. With `force` also if it could not be ended. */
  async remove(
    wanted: string,
    { force, ...options }: { force: boolean } & CloseOptions,
  ): Promise<Receipt | null> {
    const { name } = this.find(wanted);
    const receipt = await this.stop(name, options).catch((error: unknown) => {
      if (!force) throw error;
      this.#options.onWarning(error);
      return null;
    });
    this.#held.delete(name);
    this.#noLongerLeft(name);
    removeLasting(this.#options.brigHome, name);
    removeKept(this.#options.brigHome, name);
    return receipt;
  }

  /** Ends all of them. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const name of this.#held.keys()) this.#asked.set(name, { reason: "owner-stopped" });
    await this.sandboxes.close();
  }

  async #keep(name: string, opened: OpenedLasting): Promise<LastingRecord> {
    const { sandbox, about } = opened;
    const { brigHome, owner } = this.#options;
    if (this.#isClosed) {
      await sandbox[Symbol.asyncDispose]();
      throw endedError({ name, reason: "owner-stopped" });
    }
    const record: LastingRecord = {
      ...{ name, id: sandbox.id, state: "running", reason: null, owner },
      about: { ...about },
    };
    try {
      this.#recording(() => writeLasting(brigHome, record));
    } catch (error) {
      await sandbox[Symbol.asyncDispose]();
      throw error;
    }
    this.#hold(record, opened);
    return record;
  }

  /** Error: `store.failed`, in place of the system's own. */
  #recording(write: () => void): void {
    const { brigHome } = this.#options;
    try {
      write();
    } catch (cause) {
      throw new BrigError(`the sandbox cannot be recorded in ${brigHome}: ${systemReason(cause)}`, {
        code: "store.failed",
        disk: fullDiskOfBrig(cause, brigHome),
        cause,
      });
    }
  }

  #hold(record: LastingRecord, opened: OpenedLasting): HeldSandbox {
    const { sandbox, idleMs, maxLifeMs } = opened;
    const log = new OutputLog();
    const noted = notedIn(sandbox);
    const served = this.sandboxes.add({
      ...{ id: sandbox.id, client: LOCAL_CLIENT, env: {}, idleMs, maxLifeMs },
      opened: { ...this.#placeOf(record, opened), noted, onOutput: (stream, data) => log.add(stream, data) },
      seat: { [Symbol.dispose]: () => undefined },
    });
    const points = new CommandPoints(sandbox, this.#options.onWarning);
    const egress = new EgressFeed(sandbox);
    const connected = new ConnectedCommands(sandbox, noted);
    const held = { record, opened, served, log, points, egress, shell: new SharedShell(), connected };
    this.#held.set(record.name, held);
    return held;
  }

  #placeOf(
    record: LastingRecord,
    { sandbox, about, workingDirectory, maxLifeMs }: OpenedLasting,
  ): OpenedPlace {
    const openedAt = performance.now();
    let isClosing = false;
    let endsByItself = false;
    return {
      ...{ sandbox, image: about.image, mode: about.mode, network: about.network },
      ...{ task: null, instruction: null },
      ...{ workingDirectory, grade: null },
      onEnding(listener) {
        const onEnding = async () => {
          endsByItself ||= !isClosing;
          queueMicrotask(listener);
        };
        disposeFirst(sandbox, { [Symbol.asyncDispose]: onEnding });
      },
      close: async () => {
        isClosing = true;
        const asked = this.#asked.get(record.name);
        const receipt = await sandbox.close({ onCopied: asked?.onCopied });
        const byTime = performance.now() - openedAt >= maxLifeMs ? "max-life" : "idle";
        const reason = asked?.reason ?? (endsByItself ? "ended" : byTime);
        await this.#keepLog(record.name);
        removeKept(this.#options.brigHome, record.name);
        this.#noteEnd(record, { reason, receipt });
        return receipt;
      },
    };
  }

  /** A failure costs only the output, and the sandbox has ended all the same. */
  async #keepLog(name: string): Promise<void> {
    const log = this.#held.get(name)?.log;
    if (log === undefined || log.end === 0) return;
    try {
      const { chunks } = await log.read();
      writeLog(this.#options.brigHome, name, chunks.map(logFrame));
    } catch (error) {
      this.#options.onWarning(error);
    }
  }

  #noteEnd(record: LastingRecord, { reason, receipt }: { reason: EndReason; receipt: Receipt }): void {
    const { name, id } = record;
    if (this.#held.get(name)?.record.id !== id) return;
    this.#held.get(name)?.log.close();
    this.#held.delete(name);
    this.#asked.delete(name);
    if (reason === "stopped") this.#receipts.set(name, receipt);
    try {
      writeLasting(this.#options.brigHome, {
        ...{ ...record, state: "stopped", reason },
        changes: receipt.changes?.snapshot,
      });
    } catch (error) {
      this.#options.onWarning(error);
    }
    // One that has ended by itself is still among those that are served.
    if (reason === "ended") void this.sandboxes.remove(LOCAL_CLIENT, id).catch(this.#options.onWarning);
  }

  #isTaken(name: string): boolean {
    const file = join(lastingDirectory(this.#options.brigHome), `${name}.json`);
    return this.#reserved.has(name) || this.#held.has(name) || existsSync(file);
  }

  #freeName(): string {
    for (;;) {
      const name = `${oneOf(FIRST_WORDS)}-${oneOf(SECOND_WORDS)}`;
      if (!this.#isTaken(name)) return name;
    }
  }
}

class Latch {
  readonly opened: Promise<void>;
  open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => {
      this.open = resolve;
    });
  }
}

function notTakenOver(name: string): BrigError {
  return new BrigError(`the engine did not answer yet to go on with the sandbox ${name}`, {
    code: "engine.failed",
    hint: "it is asked again; to forget the sandbox: brig rm --force",
  });
}

/** A terminal has one output. */
export function logFrame({ stream, data }: OutputChunk): Buffer {
  return encodeFrame(stream === "stderr" ? FRAME.stderr : FRAME.stdout, data);
}

function oneOf(words: readonly string[]): string {
  return words[randomInt(words.length)] as string;
}
