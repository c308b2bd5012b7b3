import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { BrigError } from "../../../../src/errors.js";
import { ExitKind, FrameType, INITIAL_CREDIT } from "../../../../src/sandbox/channel/protocol.js";
import type { InsideConnection } from "../../../../src/sandbox/egress/inside-network.js";
import {
  encodeAddress,
  parseAddress,
  SandboxNetwork,
} from "../../../../src/sandbox/network/sandbox-network.js";
import { exitPayload, uint32 } from "../channel/fake-runner.js";
import { playedLink } from "../channel/played-link.js";

const at = { address: "127.0.0.1", port: 80 };
const ends = Buffer.concat([encodeAddress(at), encodeAddress({ address: "127.0.0.1", port: 40_000 })]);

function socketExit(errno = 0): Buffer {
  const payload = exitPayload(0, ExitKind.socket);
  payload.writeUInt32LE(errno, 4);
  return payload;
}

/** A listener on channel 1, whose channels for connections to come are 2 and the next ones. */
async function listen() {
  const { runner, link } = await playedLink();
  const gone = new Promise<BrigError>((resolve) => {
    link.onGone = resolve;
  });
  runner.onFrame = ({ type, channel }) => {
    if (type === FrameType.listen) runner.send(FrameType.bound, channel, encodeAddress(at));
  };
  const connections: InsideConnection[] = [];
  const datagrams: Buffer[] = [];
  const network = new SandboxNetwork(link);
  await network.listen(at, (connection) => connections.push(connection));
  return { runner, link, gone, network, connections, datagrams };
}

/** The same with a connection on channel 2. */
async function connected() {
  const opened = await listen();
  opened.runner.send(FrameType.connected, 2, ends);
  await expect.poll(() => opened.connections.length).toBe(1);
  const [connection] = opened.connections;
  if (connection === undefined) throw new Error("no connection");
  return { ...opened, connection };
}

describe("a runner that was tampered with", () => {
  it.for<[string, number, number, Buffer]>([
    ["sends a connection without addresses", FrameType.connected, 3, Buffer.alloc(39)],
    ["sends an address of unknown family", FrameType.connected, 3, Buffer.alloc(40)],
    ["connects a connection twice", FrameType.connected, 2, ends],
    ["connects the listener", FrameType.connected, 1, ends],
    ["sends data before there is a connection", FrameType.stdout, 3, Buffer.from("x")],
    ["sends data of the listener", FrameType.stdout, 1, Buffer.from("x")],
    ["sends a second stream", FrameType.stderr, 2, Buffer.from("x")],
    ["sends a datagram to a listener", FrameType.datagramFromRunner, 1, ends],
    ["sends a datagram to a connection", FrameType.datagramFromRunner, 2, ends],
    ["binds a connection", FrameType.bound, 2, encodeAddress(at)],
    ["ends a connection well before its end of file", FrameType.exit, 2, socketExit()],
    ["ends a connection as if it were a command", FrameType.exit, 2, exitPayload(0)],
    ["grants a listener credit", FrameType.creditFromRunner, 1, uint32(1)],
    ["speaks of a channel that does not exist", FrameType.connected, 999, ends],
  ])("that %s loses the sandbox", async ([, type, channel, payload]) => {
    const { runner, gone, connection } = await connected();
    runner.send(type, channel, payload);
    expect(await gone).toMatchObject({ code: "protocol.invalid" });
    expect(connection.stream.destroyed).toBe(true);
  });

  it("that sends more than it was granted, or goes on after the end of file, loses the sandbox", async () => {
    for (const last of ["too much", "too late"] as const) {
      const { runner, gone } = await connected();
      if (last === "too late") runner.send(FrameType.stdout, 2);
      else
        for (let sent = 0; sent < INITIAL_CREDIT; sent += 32_768)
          runner.send(FrameType.stdout, 2, Buffer.alloc(32_768));
      runner.send(FrameType.stdout, 2, Buffer.from("x"));
      expect(await gone, last).toMatchObject({ code: "protocol.invalid" });
    }
  });
});

describe("a connection", () => {
  it("waits with its input for credit, and with credit for who reads", async () => {
    const { runner, connection } = await connected();
    const { stream } = connection;
    const wrote = new Promise((resolve) => stream.write(Buffer.alloc(INITIAL_CREDIT + 1), resolve));
    const inputs = () =>
      runner.frames.filter(({ type, channel }) => type === FrameType.input && channel === 2);
    const sum = () => inputs().reduce((bytes, { payload }) => bytes + payload.length, 0);
    await expect.poll(sum).toBe(INITIAL_CREDIT);
    runner.send(FrameType.creditFromRunner, 2, uint32(1));
    await wrote;
    for (let sent = 0; sent < INITIAL_CREDIT; sent += 65_536)
      runner.send(FrameType.stdout, 2, Buffer.alloc(65_536));
    const credits = () => runner.frames.filter(({ type }) => type === FrameType.credit).length;
    await expect.poll(() => stream.readableLength).toBe(INITIAL_CREDIT);
    expect(credits()).toBe(0);
    stream.resume();
    await expect.poll(credits).toBeGreaterThan(0);
  });

  it("is over for its reader only when what came before an error is read", async () => {
    const { runner, connection } = await connected();
    runner.send(FrameType.stdout, 2, Buffer.from("the answer"));
    runner.send(FrameType.stdout, 2);
    runner.send(FrameType.exit, 2, socketExit(32));
    await expect.poll(() => connection.stream.readableLength).toBe(10);
    const [data] = await once(connection.stream, "data");
    expect(String(data)).toBe("the answer");
    await expect.poll(() => connection.stream.errored).toMatchObject({ errno: "EPIPE" });
  });

  it("that the program resets before its end of file is an error of the stream, and the sandbox goes on", async () => {
    const { runner, link, connection } = await connected();
    runner.send(FrameType.exit, 2, socketExit(104));
    await expect.poll(() => connection.stream.errored).toMatchObject({ errno: "ECONNRESET" });
    await link.ping();
  });

  it("does not take an error of its caller for one of the stream", async () => {
    const { runner, link, network } = await listen();
    const thrown = new Promise((resolve) => {
      const listeners = process.listeners("uncaughtException");
      process.removeAllListeners("uncaughtException");
      process.once("uncaughtException", (error) => {
        for (const listener of listeners) process.on("uncaughtException", listener);
        resolve(error);
      });
    });
    const before = link.channelCount;
    await network.listen({ ...at, port: 81 }, () => {
      throw new Error("the caller's");
    });
    runner.send(FrameType.connected, before + 2, ends);
    expect(await thrown).toMatchObject({ message: "the caller's" });
    await link.ping();
  });
});

describe("an address", () => {
  it.for(["127.0.0.1", "127.8.9.10", "::1"])("%s is read as it was written", (address) => {
    expect(parseAddress(encodeAddress({ address, port: 65_535 }), 0)).toEqual({ address, port: 65_535 });
  });

  it.for(["0.0.0.0", "128.0.0.1", "::", "::2", "::ffff:10.0.0.1", "localhost", "", "127.1"])(
    "that is not of loopback, as %j, is refused",
    (address) => {
      expect(() => encodeAddress({ address, port: 1 })).toThrow(
        expect.objectContaining({ code: "usage.invalid" }),
      );
    },
  );
});
