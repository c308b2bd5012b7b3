import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { describe, expect, it } from "vitest";
import { reset } from "../../../../../src/sandbox/egress/join.js";
import { dialTo, eventually, tcpServer } from "../../../../support/egress-place.js";
import { selfSigned } from "../../../../support/self-signed.js";

describe("a reset", () => {
  it("tells the other side that the end is not a proper one", async () => {
    await using server = await tcpServer(() => undefined);
    const { socket, peer, ended } = await connectedTo(server);
    reset(peer);
    expect(await ended).toBe("reset");
    expect(socket.destroyed).toBe(true);
  });

  it("closes a connection that is just ending, too", async () => {
    await using server = await tcpServer(() => undefined);
    const { socket, peer } = await connectedTo(server);
    const errors: unknown[] = [];
    peer.on("error", (error) => errors.push(error));
    const closed = once(peer, "close");
    peer.end("bye");
    reset(peer);
    await closed;
    expect(errors).toEqual([]);
    socket.destroy();
  });

  it("closes a connection by TLS, too", async () => {
    const server = createTlsServer(selfSigned);
    server.on("secureConnection", (peer) => peer.on("error", () => undefined));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const closed = once(socket, "close");
    reset(socket);
    await closed;
    server.close();
  });
});

async function connectedTo({ port, sockets }: { port: number; sockets: ReadonlySet<Socket> }) {
  const dialled = await dialTo(port);
  const peer = await eventually(() => {
    const [first] = sockets;
    if (first === undefined) throw new Error("nobody has connected yet");
    return first;
  });
  return { ...dialled, peer };
}
