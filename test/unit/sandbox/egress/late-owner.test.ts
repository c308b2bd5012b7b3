import { describe, expect, it } from "vitest";
import { newCanary } from "../../../../src/sandbox/egress/canaries/new-canary.js";
import type { ConnectionOwner } from "../../../../src/sandbox/egress/inside-network.js";
import { dialTo, egressPlace, eventually, tcpServer } from "../../../support/egress-place.js";

const CANARY = newCanary("trap", { form: "token", variable: "TRAP", file: null });

/** What a program sends to the proxy, and what it sends once it has a tunnel. */
const ways = {
  tunnel: (host: string) => `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n\0secret`,
  request: (host: string) => `GET http://${host}/secret HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
  "web socket": (host: string) =>
    `GET http://${host}/secret HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
};

/**
 * A connection that the rules allowed and that is open, while it is still being found out which program has made it. A
 * program can make this take long.
 */
async function connecting(text: (host: string) => string) {
  let received = "";
  const server = await tcpServer((socket) => {
    socket.on("data", (chunk) => {
      received += String(chunk);
    });
  });
  const host = `a.example:${server.port}`;
  const place = await egressPlace({ hosts: [host, "127.0.0.1"], canaries: [CANARY] });
  let find: (owner: ConnectionOwner | null) => void = () => undefined;
  const owner = new Promise<ConnectionOwner | null>((resolve) => {
    find = resolve;
  });
  place.network.ownerOf = async () => await owner;
  const dialled = await dialTo(place.proxyPort);
  dialled.socket.write(text(host));
  await eventually(() => expect(server.sockets.size).toBe(1));
  return {
    ...{ place, host, dialled, received: () => received },
    find: () => find(null),
    async [Symbol.asyncDispose]() {
      find(null);
      dialled.socket.destroy();
      await place[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe.each(Object.entries(ways))("a %s whose program is still looked for", (_, text) => {
  it("is not opened once the rules do not allow it any more", async () => {
    await using one = await connecting(text);
    one.place.egress.setHosts(["b.example"]);
    one.find();
    await one.dialled.ended;
    await eventually(() =>
      expect(one.place.attempts).toMatchObject([
        { outcome: { kind: "denied", denial: { kind: "rules-changed" } }, rule: one.host },
      ]),
    );
    expect(one.received()).toBe("");
    expect(one.dialled.received()).toMatch(/^HTTP\/1\.1 403 /);
  });

  it("is not opened once another one has sent a canary", async () => {
    await using one = await connecting(text);
    const other = await dialTo(one.place.proxyPort);
    other.socket.write(`GET http://${one.host}/${CANARY.values[0]} HTTP/1.1\r\nHost: ${one.host}\r\n\r\n`);
    await eventually(() => expect(one.place.sentCanaries).toHaveLength(1));
    one.find();
    await eventually(() =>
      expect(one.place.attempts).toContainEqual(
        expect.objectContaining({
          outcome: { kind: "denied", denial: { kind: "canary", name: "trap", isLeak: false } },
        }),
      ),
    );
    expect(one.received()).toBe("");
  });

  it("is not opened once the sandbox is closed", async () => {
    await using one = await connecting(text);
    await one.place.egress.close();
    one.find();
    await eventually(() =>
      expect(one.place.attempts).toMatchObject([{ outcome: { denial: { kind: "rules-changed" } } }]),
    );
    expect(one.received()).toBe("");
  });

  it("is opened as ever when the rules still allow it", async () => {
    await using one = await connecting(text);
    one.place.egress.setHosts([one.host, "127.0.0.1", "b.example"]);
    one.find();
    await eventually(() => expect(one.received()).toContain("secret"));
  });
});
