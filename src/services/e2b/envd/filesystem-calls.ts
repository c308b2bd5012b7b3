import { randomBytes } from "node:crypto";
import { posix } from "node:path";
import { z } from "zod";
import { isBrigError } from "../../../errors.js";
import { AnySignal } from "../../../lib/time/any-signal.js";
import type { DirectoryEntry, FileWatch, Sandbox, WatchedChange } from "../../../sandbox/index.js";
import type { MemoryShare } from "../../serve/http/memory-budget.js";
import type { ServedSandbox } from "../../serve/sandboxes/served-sandbox.js";
import { ConnectFailure, connectError, type MessageStream } from "./connect-protocol.js";
import { type EntryInfo, entryInfo, unnamedEntry } from "./entry-info.js";
import { resolvePath } from "./place-paths.js";

const path = z.string().max(4096).default("");
export const pathSchema = z.object({ path });
export const moveSchema = z.object({ source: path, destination: path });
export const listSchema = z.object({ path, depth: z.int().min(0).default(1) });
export const watchSchema = z.object({
  path,
  recursive: z.boolean().default(false),
  includeEntry: z.boolean().default(false),
});
export const watcherSchema = z.object({ watcherId: z.string() });

/** What calls about files use. */
export interface FilesPlace {
  sandbox: Sandbox;
  home: string;
  /** What the sandbox's own user is called. */
  user: string;
  signal: AbortSignal;
  memory: MemoryShare;
}

export async function stat(request: z.output<typeof pathSchema>, place: FilesPlace) {
  return { entry: await entryInfo(resolvePath(request.path, place.home), place) };
}

/** Error: `already_exists` for a directory that is there. */
export async function makeDirectory(request: z.output<typeof pathSchema>, place: FilesPlace) {
  const { files } = place.sandbox;
  const { signal } = place;
  const directory = resolvePath(request.path, place.home);
  if (directory !== "/")
    await files.mkdir(posix.dirname(directory), { recursive: true, mode: 0o755, signal });
  try {
    await files.mkdir(directory, { mode: 0o755, signal });
  } catch (error) {
    if (!isBrigError(error, "file.exists")) throw error;
    const { type } = await files.stat(directory, { signal });
    if (type === "directory") throw error;
    throw new ConnectFailure(`${directory} is there, and is no directory`, {
      code: "invalid_argument",
      cause: error,
    });
  }
  return { entry: await entryInfo(directory, place) };
}

export async function move({ source, destination }: z.output<typeof moveSchema>, place: FilesPlace) {
  const { files } = place.sandbox;
  const { signal } = place;
  const [from, to] = [resolvePath(source, place.home), resolvePath(destination, place.home)];
  await files.stat(from, { followSymlinks: false, signal });
  await files.mkdir(posix.dirname(to), { recursive: true, mode: 0o755, signal });
  await files.rename(from, to, { signal });
  return { entry: await entryInfo(to, place) };
}

export async function remove(request: z.output<typeof pathSchema>, { sandbox, home, signal }: FilesPlace) {
  await sandbox.files.remove(resolvePath(request.path, home), { recursive: true, force: true, signal });
  return {};
}

/** A directory may have any number of entries. */
const MAX_ENTRIES = 10_000;
/** The most that one entry takes: what is known of it, its JSON, and that as bytes. */
const ENTRY_BYTES = 2048;
/** How many entries are asked for at once. */
const WIDTH = 16;

/** What is in a directory and, with a depth, in those below it, in order of the names. Links are not followed. */
export async function listDirectory({ path, depth }: z.output<typeof listSchema>, place: FilesPlace) {
  const directory = resolvePath(path, place.home);
  const entries: EntryInfo[] = [];
  await addEntries(directory, { entries, depth: Math.max(1, depth), place });
  return { entries };
}

async function addEntries(
  directory: string,
  { entries, depth, place }: { entries: EntryInfo[]; depth: number; place: FilesPlace },
): Promise<void> {
  const { memory } = place;
  const found = (await listed(directory, MAX_ENTRIES - entries.length, place)).toSorted((one, other) =>
    Buffer.compare(one.nameBytes, other.nameBytes),
  );
  memory.take(found.length * ENTRY_BYTES);
  for (let at = 0; at < found.length; at += WIDTH) {
    const group = found.slice(at, at + WIDTH);
    const described = await Promise.all(group.map((entry) => describe(directory, entry, place)));
    for (const [index, entry] of described.entries()) {
      if (entry === null) continue;
      entries.push(entry);
      if (depth > 1 && group[index]?.type === "directory")
        await unlessGone(addEntries(entry.path, { entries, depth: depth - 1, place }));
    }
  }
}

/** Error: `resource_exhausted` for more entries than there is room for. */
async function listed(
  directory: string,
  room: number,
  { sandbox, signal }: FilesPlace,
): Promise<DirectoryEntry[]> {
  const entries: DirectoryEntry[] = [];
  const enough = new AbortController();
  using either = new AnySignal([signal, enough.signal]);
  try {
    await sandbox.files.list(directory, {
      signal: either.signal,
      onEntries(more) {
        for (const { name, nameBytes, type } of more.slice(0, room + 1 - entries.length))
          entries.push({ name, nameBytes: Buffer.from(nameBytes), type });
        if (entries.length > room) enough.abort();
      },
    });
  } catch (error) {
    if (!enough.signal.aborted || signal.aborted) throw error;
  }
  if (entries.length <= room) return entries;
  throw new ConnectFailure(
    `more than ${MAX_ENTRIES} entries are below the path; list a smaller directory, or use a command such as ls`,
    { code: "resource_exhausted" },
  );
}

/** Null for an entry that was removed meanwhile. */
async function describe(
  directory: string,
  { name, nameBytes, type }: DirectoryEntry,
  place: FilesPlace,
): Promise<EntryInfo | null> {
  const path = posix.join(directory, name);
  if (!Buffer.from(nameBytes).equals(Buffer.from(name))) return unnamedEntry(path, type);
  return (await unlessGone(entryInfo(path, place))) ?? null;
}

async function unlessGone<T>(doing: Promise<T>): Promise<T | undefined> {
  try {
    return await doing;
  } catch (error) {
    if (!isBrigError(error) || !error.code.startsWith("file.")) throw error;
    return undefined;
  }
}

const eventTypeOf: Record<WatchedChange["type"], string> = {
  create: "EVENT_TYPE_CREATE",
  write: "EVENT_TYPE_WRITE",
  remove: "EVENT_TYPE_REMOVE",
  rename: "EVENT_TYPE_RENAME",
  chmod: "EVENT_TYPE_CHMOD",
};

interface WatchPlace extends FilesPlace {
  served: ServedSandbox;
}

type WatchRequest = z.output<typeof watchSchema>;

/** How many bytes a watcher may keep of events that its client has not fetched yet. */
const MAX_KEPT_BYTES = 512 * 1024;
/** What an event takes besides its path, which is in it up to three times. */
const EVENT_BYTES = 512;
/** Those that have ended are forgotten beyond this number. */
const MAX_WATCHERS = 64;

/** A watch whose events are asked for, instead of being streamed. */
interface Watcher {
  watch: FileWatch;
  events: object[];
  keptBytes: number;
  failure: unknown;
  hasEnded: boolean;
}

/** The watches of one sandbox. */
export class EnvdWatches {
  readonly #watchers = new Map<string, Watcher>();

  /** Sends all changes, until the directory is gone or the client has. Errors: `file.*`; failures; the signal's reason. */
  async follow(request: WatchRequest, place: WatchPlace, stream: MessageStream): Promise<void> {
    await using watch = await this.#open(request, place);
    await stream.send({ start: {} });
    for await (const change of watch)
      await stream.send({ filesystem: await eventOf(change, request, place) });
  }

  async create(request: WatchRequest, place: WatchPlace) {
    // It outlives the call, and ends with its sandbox.
    const lasting = { ...place, signal: new AbortController().signal };
    const watch = await this.#open(request, lasting);
    const watcher: Watcher = { watch, events: [], keptBytes: 0, failure: undefined, hasEnded: false };
    for (const [id, { hasEnded }] of this.#watchers)
      if (hasEnded && this.#watchers.size >= MAX_WATCHERS) this.#watchers.delete(id);
    const watcherId = randomBytes(8).toString("hex");
    this.#watchers.set(watcherId, watcher);
    void collect(watcher, async (change) => await eventOf(change, request, lasting));
    return { watcherId };
  }

  /** The events since it was asked for the last time. */
  events({ watcherId }: z.output<typeof watcherSchema>) {
    const watcher = this.#get(watcherId);
    if (watcher.failure !== undefined) {
      const { code, message } = connectError(watcher.failure);
      throw new ConnectFailure(message, { code });
    }
    watcher.keptBytes = 0;
    return { events: watcher.events.splice(0) };
  }

  async remove({ watcherId }: z.output<typeof watcherSchema>) {
    const { watch } = this.#get(watcherId);
    this.#watchers.delete(watcherId);
    await watch.close();
    return {};
  }

  #get(id: string): Watcher {
    const watcher = this.#watchers.get(id);
    if (watcher !== undefined) return watcher;
    throw new ConnectFailure(`there is no watcher ${JSON.stringify(id)}`, { code: "not_found" });
  }

  async #open({ path, recursive }: WatchRequest, place: WatchPlace): Promise<FileWatch> {
    const { served, sandbox, home, signal } = place;
    return await served.watches.open(sandbox, resolvePath(path, home), { recursive, signal });
  }
}

/** Never rejects: whoever asks for the events is told what has ended them. */
async function collect(
  watcher: Watcher,
  eventFor: (change: WatchedChange) => Promise<object>,
): Promise<void> {
  try {
    for await (const change of watcher.watch) {
      watcher.keptBytes += EVENT_BYTES + 3 * change.path.length;
      if (watcher.keptBytes > MAX_KEPT_BYTES)
        throw new ConnectFailure(
          "more events came than are kept until they are asked for; watch again, and ask more often",
          { code: "resource_exhausted" },
        );
      watcher.events.push(await eventFor(change));
    }
  } catch (error) {
    watcher.failure = error;
    watcher.events = [];
  } finally {
    watcher.hasEnded = true;
    await watcher.watch.close();
  }
}

async function eventOf(change: WatchedChange, request: WatchRequest, place: FilesPlace): Promise<object> {
  const event = { name: change.path === "" ? "." : change.path, type: eventTypeOf[change.type] };
  if (!request.includeEntry) return event;
  const whole = posix.join(resolvePath(request.path, place.home), change.path);
  const entry = await unlessGone(entryInfo(whole, place));
  return { ...event, ...(entry !== undefined && { entry }) };
}
