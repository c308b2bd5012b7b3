import type { IncomingMessage, ServerResponse } from "node:http";
import type { z } from "zod";
import { isBrigError } from "../../../errors.js";
import { TimeLimit } from "../../../lib/time/time-limit.js";
import type { MemoryShare } from "../../serve/http/memory-budget.js";
import { Refusal } from "../../serve/http/refusal.js";
import type { InUse, ServedSandbox } from "../../serve/sandboxes/served-sandbox.js";
import {
  ConnectFailure,
  connectError,
  keepAlive,
  MessageStream,
  readEnvelope,
  readMessage,
  refuseOtherCodec,
  sendFailure,
  sendMessage,
  timeoutOf,
} from "./connect-protocol.js";
import { answerFiles } from "./file-transfers.js";
import * as filesystem from "./filesystem-calls.js";
import { namedUser, refuseOtherUser } from "./place-paths.js";
import * as processes from "./process-calls.js";

/** What clients take this daemon for: they use what that version can do. */
export const ENVD_VERSION = "0.6.4";

/** Where a request to the port of a sandbox's own daemon is answered. Who asks has been checked. */
export interface EnvdPlace {
  served: ServedSandbox;
  /** Absolute: where commands start, and what relative paths begin at. It can be written, and forks and snapshots carry it. */
  home: string;
  /** What the daemon calls the user that commands run as when nothing else is asked for. */
  user: string;
  /** Aborted when the client has gone, and when the service ends. */
  signal: AbortSignal;
  /** What is kept for the request counts here. */
  memory: MemoryShare;
}

/** What is kept between requests about one sandbox. */
interface EnvdState {
  processes: processes.EnvdProcesses;
  watches: filesystem.EnvdWatches;
}

interface CallPlace extends filesystem.FilesPlace, EnvdState {
  served: ServedSandbox;
  incoming: IncomingMessage;
}

type Unary = (
  read: <S extends z.ZodType>(schema: S) => Promise<z.output<S>>,
  place: CallPlace,
) => Promise<object>;
type Streaming = (stream: MessageStream, place: CallPlace) => Promise<void>;

/** What a stream has on the way to its client. */
const STREAM_BYTES = 512 * 1024;

/** Answers as E2B's daemon in a sandbox does: processes, terminals, files. */
export class Envd {
  readonly #states = new WeakMap<ServedSandbox, EnvdState>();

  /** Errors: refusals, and faults of the service, if nothing was answered yet. */
  async answer(incoming: IncomingMessage, outgoing: ServerResponse, place: EnvdPlace): Promise<void> {
    const [path = ""] = `${incoming.url}`.split("?", 1);
    const unary = unaryCalls[path];
    const streaming = streamingCalls[path];
    if (unary !== undefined || streaming !== undefined)
      return await this.#answerCall(incoming, outgoing, { place, unary, streaming });
    if (path === "/files")
      return await this.#use(incoming, place, async (call) => await answerFiles(incoming, outgoing, call));
    incoming.resume();
    if (incoming.method === "GET" && path === "/health") return void outgoing.writeHead(204).end();
    const message = `${path} is not supported`;
    outgoing.writeHead(404, { "content-type": "application/json" });
    outgoing.end(JSON.stringify({ code: "unimplemented", message }));
  }

  async #answerCall(
    incoming: IncomingMessage,
    outgoing: ServerResponse,
    {
      place,
      unary,
      streaming,
    }: { place: EnvdPlace; unary: Unary | undefined; streaming: Streaming | undefined },
  ): Promise<void> {
    const isStream = streaming !== undefined;
    const stream = new MessageStream(outgoing, place.signal);
    try {
      if (incoming.method !== "POST") throw new ConnectFailure("a call is a POST", { code: "unimplemented" });
      refuseOtherCodec(incoming, isStream ? "stream" : "unary");
      await this.#use(incoming, place, async (call) => {
        if (streaming !== undefined) {
          await streaming(stream, call);
          stream.end();
        } else if (unary !== undefined) {
          refuseOtherUser(namedUser(incoming), call);
          const read = async <S extends z.ZodType>(schema: S) =>
            await readMessage(incoming, schema, place.memory);
          sendMessage(outgoing, await unary(read, call));
        }
      });
    } catch (error) {
      if (place.signal.aborted || outgoing.closed) return void outgoing.destroy();
      if (isBrigError(error, "sandbox.gone") && !outgoing.headersSent) throw notThere(error);
      const failure = connectError(error);
      if (failure.isFault && !outgoing.headersSent) throw error;
      if (outgoing.headersSent) stream.end(failure);
      else sendFailure(outgoing, failure, { incoming, isStream });
    }
  }

  async #use(
    incoming: IncomingMessage,
    { served, home, user, signal, memory }: EnvdPlace,
    run: (place: CallPlace) => Promise<void>,
  ): Promise<void> {
    await served.use(signal, async ({ sandbox, signal }: InUse) => {
      await run({ ...this.#stateOf(served), served, incoming, sandbox, home, user, signal, memory });
    });
  }

  #stateOf(served: ServedSandbox): EnvdState {
    const known = this.#states.get(served);
    if (known !== undefined) return known;
    const state = { processes: new processes.EnvdProcesses(), watches: new filesystem.EnvdWatches() };
    this.#states.set(served, state);
    return state;
  }
}

/** That a sandbox has gone is told by the status, whatever the call is. */
function notThere(cause: unknown): Refusal {
  return new Refusal("the sandbox was not found", { status: 502, code: "sandbox.gone", cause });
}

const all = ({ served }: CallPlace) => served.processes.list();

const unaryCalls: Partial<Record<string, Unary>> = {
  "/process.Process/List": async (_, place) => ({ processes: place.processes.list(all(place)) }),
  "/process.Process/SendInput": async (read, place) => {
    const { process, input } = await read(processes.inputSchema);
    const found = place.processes.running(all(place), process);
    await found.write(input.stdin ?? input.pty ?? Buffer.alloc(0), place);
    return {};
  },
  "/process.Process/CloseStdin": async (read, place) => {
    const { process } = await read(processes.selectedSchema);
    await place.processes.running(all(place), process).closeInput(place);
    return {};
  },
  "/process.Process/SendSignal": async (read, place) => {
    const { process, signal } = await read(processes.signalSchema);
    const found = place.processes.running(all(place), process);
    await found.signal(signal.replace("SIGNAL_", ""));
    // With what has left its process group.
    if (signal === "SIGNAL_SIGKILL") await found.end();
    return {};
  },
  "/process.Process/Update": async (read, place) => {
    const { process, pty } = await read(processes.updateSchema);
    const found = place.processes.running(all(place), process);
    if (pty) found.resize(pty.size);
    return {};
  },
  "/process.Process/StreamInput": async () => {
    throw new ConnectFailure("streams of input are not supported; send it with SendInput", {
      code: "unimplemented",
    });
  },
  "/filesystem.Filesystem/Stat": async (read, place) =>
    await filesystem.stat(await read(filesystem.pathSchema), place),
  "/filesystem.Filesystem/MakeDir": async (read, place) =>
    await filesystem.makeDirectory(await read(filesystem.pathSchema), place),
  "/filesystem.Filesystem/Move": async (read, place) =>
    await filesystem.move(await read(filesystem.moveSchema), place),
  "/filesystem.Filesystem/ListDir": async (read, place) =>
    await filesystem.listDirectory(await read(filesystem.listSchema), place),
  "/filesystem.Filesystem/Remove": async (read, place) =>
    await filesystem.remove(await read(filesystem.pathSchema), place),
  "/filesystem.Filesystem/CreateWatcher": async (read, place) =>
    await place.watches.create(await read(filesystem.watchSchema), place),
  "/filesystem.Filesystem/GetWatcherEvents": async (read, place) =>
    place.watches.events(await read(filesystem.watcherSchema)),
  "/filesystem.Filesystem/RemoveWatcher": async (read, place) =>
    await place.watches.remove(await read(filesystem.watcherSchema)),
};

const streamingCalls: Partial<Record<string, Streaming>> = {
  "/process.Process/Start": async (stream, place) => {
    const { served, sandbox, home, incoming, signal, memory } = place;
    const timeoutMs = timeoutOf(incoming);
    memory.take(STREAM_BYTES);
    const request = await readEnvelope(incoming, processes.startSchema, memory);
    memory.giveBackTo(STREAM_BYTES);
    refuseOtherUser(namedUser(incoming), place);
    const wanted = await place.processes.requestOf(request, { sandbox, home, timeoutMs, signal });
    const process = await served.processes.start(wanted, { signal });
    // Nobody knows of it.
    if (signal.aborted) await process.end();
    signal.throwIfAborted();
    place.processes.remember(process, request);
    const ping = async () => await stream.send({ event: { keepalive: {} } });
    using _pings = keepAlive(incoming, ping);
    await place.processes.follow(process, { stream, signal });
  },
  "/process.Process/Connect": async (stream, place) => {
    const { incoming, memory } = place;
    memory.take(STREAM_BYTES);
    const { process } = await readEnvelope(incoming, processes.selectedSchema, memory);
    memory.giveBackTo(STREAM_BYTES);
    const found = place.processes.connectable(all(place), process);
    const ping = async () => await stream.send({ event: { keepalive: {} } });
    using _pings = keepAlive(incoming, ping);
    await inTime(place, async (limited) => await place.processes.follow(found, { stream, signal: limited }));
  },
  "/filesystem.Filesystem/WatchDir": async (stream, place) => {
    const { incoming, memory } = place;
    memory.take(STREAM_BYTES);
    const request = await readEnvelope(incoming, filesystem.watchSchema, memory);
    memory.giveBackTo(STREAM_BYTES);
    refuseOtherUser(namedUser(incoming), place);
    using _pings = keepAlive(incoming, async () => await stream.send({ keepalive: {} }));
    await inTime(
      place,
      async (limited) => await place.watches.follow(request, { ...place, signal: limited }, stream),
    );
  },
};

/** Error: a failure when the time is over that the client gives to the call. */
async function inTime(
  { incoming, signal }: CallPlace,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const timeoutMs = timeoutOf(incoming);
  if (timeoutMs === null) return await run(signal);
  using limit = new TimeLimit(timeoutMs, signal);
  try {
    await run(limit.signal);
  } catch (error) {
    if (limit.isOver && !signal.aborted)
      throw new ConnectFailure("the time of the call is over", { code: "deadline_exceeded", cause: error });
    throw error;
  }
}
