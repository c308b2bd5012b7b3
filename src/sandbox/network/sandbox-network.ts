import { BlockList, isIPv4, isIPv6, SocketAddress } from "node:net";
import type { Duplex } from "node:stream";
import { BrigError } from "../../errors.js";
import { namesByNumber } from "../../lib/names-by-number.js";
import { sharedSignal } from "../../lib/time/shared-signal.js";
import type { ChannelEvents } from "../channel/channel-events.js";
import { type Frame, protocolError } from "../channel/frames.js";
import {
  ADDRESS_BYTES,
  AddressFamily,
  FrameType,
  INITIAL_CREDIT,
  LISTEN_BYTES,
  ListenKind,
  OWNER_RECORD_BYTES,
  OWNERS_MAX,
} from "../channel/protocol.js";
import type { RunnerLink } from "../channel/runner-link.js";
import type {
  ConnectionOwner,
  InsideAddress,
  InsideConnection,
  InsideListener,
  InsideNetwork,
} from "../egress/inside-network.js";
import { run } from "../files/file-request.js";
import { encodeUint32 } from "../process/spawn-request.js";
import { callCallersCode, parseSocketExit, SandboxConnection, socketError } from "./connection.js";

/** The loopback interface inside a sandbox, used from the host through the stream to the runner. */
export class SandboxNetwork implements InsideNetwork {
  readonly #link: RunnerLink;
  readonly #owners: OwnerSearch;
  readonly #callOf: (channel: number) => string | null;

  /** `callOf` says which call has started the processes of a channel. */
  constructor(link: RunnerLink, callOf: (channel: number) => string | null = () => null) {
    this.#link = link;
    this.#callOf = callOf;
    this.#owners = new OwnerSearch(link);
  }

  async listen(
    at: InsideAddress,
    onConnection: (connection: InsideConnection) => void,
  ): Promise<InsideListener> {
    return await SandboxListener.open(this.#link, at, onConnection);
  }

  async receiveDatagrams(
    at: InsideAddress,
    onDatagram: (data: Buffer, reply: (data: Buffer) => void) => void,
  ): Promise<InsideListener> {
    return await receiveDatagrams(this.#link, at, onDatagram);
  }

  async ownerOf(connection: InsideConnection): Promise<ConnectionOwner | null> {
    const owner = await this.#owners.find(connection);
    return owner === null ? null : { ...owner, callId: this.#callOf(owner.channel) };
  }

  /**
   * Connects to a server in the sandbox. Errors: `sandbox.port-failed`, with errno ECONNREFUSED if nothing listens
   * there; `sandbox.gone`; `usage.invalid`; the signal's reason after an abort.
   */
  async connect(to: InsideAddress, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<Duplex> {
    signal?.throwIfAborted();
    const payload = encodeAddress(to);
    return await new Promise((resolve, reject) => {
      const abort = () => {
        connection.destroy();
        reject(signal?.reason);
      };
      const events = {
        onConnected() {
          signal?.removeEventListener("abort", abort);
          resolve(connection);
        },
        onOver(failure: { errno: string } | { gone: Error } | null) {
          signal?.removeEventListener("abort", abort);
          if (failure === null) return;
          const what = `port ${to.port} of the sandbox cannot be reached`;
          reject("gone" in failure ? failure.gone : socketError(what, failure.errno));
        },
      };
      const connection = new SandboxConnection(this.#link, { type: FrameType.connect, payload }, events);
      if (signal !== undefined) sharedSignal(signal).addEventListener("abort", abort, { once: true });
    });
  }
}

/** Channels that wait for connections to come, so that a connection does not wait for a round trip. */
const AHEAD = 16;
/** Further connections wait in the sandbox's kernel. */
const MOST_CONNECTIONS = 2048;

/** Takes the connections that programs in the sandbox make to one of its addresses. */
class SandboxListener implements InsideListener {
  readonly #link: RunnerLink;
  readonly #socket: BoundSocket;
  readonly #onConnection: (connection: InsideConnection) => void;
  #waiting = 0;
  #open = 0;
  #isClosed = false;

  private constructor(
    link: RunnerLink,
    socket: BoundSocket,
    onConnection: (connection: InsideConnection) => void,
  ) {
    this.#link = link;
    this.#socket = socket;
    this.#onConnection = onConnection;
  }

  /** Errors: `sandbox.port-in-use`, `sandbox.port-failed`, `sandbox.gone`, `usage.invalid`. */
  static async open(
    link: RunnerLink,
    at: InsideAddress,
    onConnection: (connection: InsideConnection) => void,
  ): Promise<SandboxListener> {
    const socket = new BoundSocket(link, at);
    await socket.bound;
    const listener = new SandboxListener(link, socket, onConnection);
    listener.#fill();
    return listener;
  }

  /** Connections that were made before go on. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#socket.close();
  }

  #fill(): void {
    const room = Math.min(AHEAD, MOST_CONNECTIONS - this.#open) - this.#waiting;
    for (let i = 0; i < room && !this.#isClosed && !this.#link.isOver; i++) this.#waitForOne();
  }

  #waitForOne(): void {
    let isConnected = false;
    this.#waiting++;
    const stream = new SandboxConnection(
      this.#link,
      { type: FrameType.accept, payload: encodeUint32(this.#socket.channel) },
      {
        onConnected: (payload) => {
          isConnected = true;
          this.#waiting--;
          this.#open++;
          this.#fill();
          this.#take({ to: parseAddress(payload, 0), from: parseAddress(payload, ADDRESS_BYTES), stream });
        },
        onOver: () => {
          if (isConnected) this.#open--;
          else this.#waiting--;
          if (isConnected) this.#fill();
        },
      },
    );
  }

  #take(connection: InsideConnection): void {
    if (this.#isClosed) connection.stream.destroy();
    else callCallersCode(() => this.#onConnection(connection));
  }
}

/** The channel of a LISTEN: a socket in the sandbox that has an address. */
class BoundSocket implements ChannelEvents {
  /** Errors: `sandbox.port-in-use`, `sandbox.port-failed`, `sandbox.gone`. */
  readonly bound: Promise<InsideAddress>;
  readonly channel: number;
  readonly #link: RunnerLink;
  readonly #at: InsideAddress;
  readonly #onDatagram: ((payload: Buffer) => void) | undefined;
  readonly #over: Promise<void>;
  #isOver = false;
  #settleBound!: { resolve: (at: InsideAddress) => void; reject: (error: unknown) => void };
  #settleOver!: () => void;

  constructor(link: RunnerLink, at: InsideAddress, onDatagram?: (payload: Buffer) => void) {
    this.#link = link;
    this.#at = at;
    this.#onDatagram = onDatagram;
    this.bound = new Promise((resolve, reject) => {
      this.#settleBound = { resolve, reject };
    });
    this.#over = new Promise((resolve) => {
      this.#settleOver = resolve;
    });
    const payload = Buffer.alloc(LISTEN_BYTES);
    payload.writeUInt8(onDatagram === undefined ? ListenKind.stream : ListenKind.datagrams, 0);
    encodeAddress(at).copy(payload, LISTEN_BYTES - ADDRESS_BYTES);
    this.channel = link.openChannel({ type: FrameType.listen, payload }, this);
  }

  async close(): Promise<void> {
    if (!this.#isOver) this.#link.send(FrameType.kill, this.channel, encodeUint32(0));
    await this.#over;
  }

  onSocketFrame({ type, payload }: Frame): void {
    if (type === FrameType.bound && payload.length === ADDRESS_BYTES)
      this.#settleBound.resolve(parseAddress(payload, 0));
    else if (type !== FrameType.datagramFromRunner || payload.length < ADDRESS_BYTES || !this.#onDatagram)
      throw protocolError("a frame that does not belong on a socket that is bound");
    else this.#onDatagram(payload);
  }

  onOutput(): void {
    throw protocolError("output of a socket that is bound");
  }

  onCredit(): void {
    throw protocolError("credit for a socket that is bound");
  }

  onExit(payload: Buffer): void {
    const { address, port } = this.#at;
    const errno = parseSocketExit(payload, this);
    this.#end(socketError(`port ${port} of ${address} cannot be listened on in the sandbox`, errno ?? "EIO"));
  }

  onGone(error: BrigError): void {
    this.#end(error);
  }

  /** The error matters only to who still waits for the address. */
  #end(error: BrigError): void {
    this.#isOver = true;
    this.#settleBound.reject(error);
    this.#settleOver();
  }
}

const CREDIT_STEP = INITIAL_CREDIT / 4;
/** The most bytes that fit into one datagram of IPv4. */
const MOST_BYTES = 65_507;

type OnDatagram = (data: Buffer, reply: (data: Buffer) => void) => void;

/**
 * Takes the datagrams that programs in the sandbox send to one of its addresses. Datagrams for which there is no room are
 * lost, as datagrams may be. Errors: as `SandboxListener.open`.
 */
async function receiveDatagrams(
  link: RunnerLink,
  at: InsideAddress,
  onDatagram: OnDatagram,
): Promise<InsideListener> {
  let ungranted = 0;
  const grant = (bytes: number) => {
    ungranted += bytes;
    if (ungranted < CREDIT_STEP) return;
    link.send(FrameType.credit, socket.channel, encodeUint32(ungranted));
    ungranted = 0;
  };
  let isClosed = false;
  const socket = new BoundSocket(link, at, (payload) => {
    const from = Buffer.from(payload.subarray(0, ADDRESS_BYTES));
    const data = Buffer.from(payload.subarray(ADDRESS_BYTES));
    const reply = (answer: Buffer) => {
      if (isClosed || answer.length > MOST_BYTES) return;
      link.send(FrameType.datagram, socket.channel, Buffer.concat([from, answer]));
    };
    grant(payload.length);
    if (!isClosed) callCallersCode(() => onDatagram(data, reply));
  });
  await socket.bound;
  return {
    async close() {
      isClosed = true;
      await socket.close();
    },
  };
}

/** The process that has a connection. */
interface ProcessOwner {
  channel: number;
  pid: number;
  program: string;
}

interface Question {
  query: Buffer;
  resolve(owner: ProcessOwner | null): void;
  reject(error: unknown): void;
}

/** Asks which processes have connections. All questions that come while one search goes on share the next. */
export class OwnerSearch {
  readonly #link: RunnerLink;
  #questions: Question[] = [];
  #isSearching = false;

  constructor(link: RunnerLink) {
    this.#link = link;
  }

  async find({ from, to }: Pick<InsideConnection, "from" | "to">): Promise<ProcessOwner | null> {
    const query = Buffer.concat([encodeAddress(from), encodeAddress(to)]);
    return await new Promise((resolve, reject) => {
      this.#questions.push({ query, resolve, reject });
      if (!this.#isSearching) void this.#search();
    });
  }

  async #search(): Promise<void> {
    this.#isSearching = true;
    while (this.#questions.length > 0) await this.#answer(this.#questions.splice(0, OWNERS_MAX));
    this.#isSearching = false;
  }

  async #answer(questions: readonly Question[]): Promise<void> {
    const context = { link: this.#link, cwd: "/", env: {}, onStuck: () => undefined };
    const second = Buffer.concat(questions.map(({ query }) => query));
    try {
      const { result } = await run(context, { operation: "owners", path: "", second });
      if (result.length !== questions.length * OWNER_RECORD_BYTES)
        throw protocolError("not one owner for each connection");
      for (const [i, question] of questions.entries())
        question.resolve(parseOwner(result.subarray(i * OWNER_RECORD_BYTES, (i + 1) * OWNER_RECORD_BYTES)));
    } catch (error) {
      for (const question of questions) question.reject(error);
    }
  }
}

/** The program's name is its own choice, so it may hold anything. */
function parseOwner(record: Buffer): ProcessOwner | null {
  const name = record.subarray(8);
  const end = name.indexOf(0);
  const pid = record.readUInt32LE(4);
  if (pid === 0) return null;
  const text = name.subarray(0, end < 0 ? name.length : end).toString("utf8");
  const program = text.replace(/[^\x20-\x7e]/g, "?");
  return { channel: record.readUInt32LE(0), pid, program };
}

const families = namesByNumber(AddressFamily);
const HOST_AT = 4;
const IPV4_BYTES = 4;

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Error: `usage.invalid` for another address than one of loopback, or for no port. */
export function encodeAddress({ address, port }: InsideAddress): Buffer {
  const family = isIPv4(address) ? "ipv4" : isIPv6(address) ? "ipv6" : undefined;
  if (family === undefined || !loopback.check(address, family))
    throw invalid(`${JSON.stringify(address)} is not an address of the sandbox's loopback, as 127.0.0.1 is`);
  if (!Number.isInteger(port) || port < 0 || port > 0xffff) throw invalid(`${port} is not a port`);
  const bytes = Buffer.alloc(ADDRESS_BYTES);
  bytes.writeUInt8(AddressFamily[family], 0);
  bytes.writeUInt16LE(port, 2);
  if (family === "ipv4") Buffer.from(address.split(".").map(Number)).copy(bytes, HOST_AT);
  else bytes.writeUInt8(1, ADDRESS_BYTES - 1);
  return bytes;
}

/** Reads the address that begins at `at`. Error: `protocol.invalid`. */
export function parseAddress(payload: Buffer, at: number): InsideAddress {
  const family = families.get(payload.readUInt8(at));
  const port = payload.readUInt16LE(at + 2);
  const host = payload.subarray(at + HOST_AT, at + ADDRESS_BYTES);
  if (family === undefined) throw protocolError("an address of unknown family");
  if (family === "ipv4") return { address: host.subarray(0, IPV4_BYTES).join("."), port };
  const groups = Array.from({ length: 8 }, (_, i) => host.readUInt16BE(i * 2).toString(16));
  return { address: new SocketAddress({ family, address: groups.join(":") }).address, port };
}

function invalid(message: string): BrigError {
  return new BrigError(message, { code: "usage.invalid" });
}
