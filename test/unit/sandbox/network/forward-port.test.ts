import { once } from "node:events";
import { connect as connectHost, createServer, type Socket } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { forwardPort } from "../../../../src/sandbox/network/forward-port.js";
import { encodeAddress } from "../../../../src/sandbox/network/sandbox-network.js";
import { failure } from "../played-sandbox.js";
import { ends, place, socketExit } from "./played-network.js";

const [EMFILE, EADDRNOTAVAIL, ECONNREFUSED] = [24, 99, 111];
const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });

/** Also of a socket that has an error, for which `once` would reject. */
const isClosed = async (socket: Socket) =>
  await new Promise<void>((resolve) => {
    if (socket.closed) resolve();
    else socket.once("close", () => resolve());
  });

describe("a port that is forwarded", () => {
  /** A runner with a server on these ports, whose connections the test answers. */
  async function forwarding(answers: (to: Buffer) => number | null, options = {}) {
    const opened = await place();
    const { runner, link } = opened;
    const asked: Buffer[] = [];
    runner.onFrame = ({ type, channel, payload }) => {
      if (type === FrameType.connect) {
        asked.push(payload);
        const errno = answers(payload);
        if (errno === null) runner.send(FrameType.connected, channel, ends);
        else runner.send(FrameType.exit, channel, socketExit(errno));
      }
      if (type === FrameType.input && payload.length > 0)
        runner.send(FrameType.stdout, channel, Buffer.from(`echo ${payload}`));
    };
    const forwarded = await forwardPort(link, 3000, options);
    onTestFinished(async () => await forwarded.close());
    const dial = (): Socket => {
      const socket = connectHost(forwarded.port, "127.0.0.1");
      socket.on("error", () => undefined);
      onTestFinished(() => void socket.destroy());
      return socket;
    };
    return { ...opened, forwarded, asked, dial };
  }

  const inside = (address: string) => encodeAddress({ address, port: 3000 });

  it("leads to the server inside, under a URL of this machine", async () => {
    const { forwarded, asked, dial } = await forwarding(() => null);
    expect(forwarded).toMatchObject({ sandboxPort: 3000, url: `http://127.0.0.1:${forwarded.port}` });
    const socket = dial();
    socket.write("hello");
    expect(String((await once(socket, "data"))[0])).toBe("echo hello");
    expect(asked).toEqual([inside("127.0.0.1")]);
  });

  it("tries the other loopback address, and again until there is a server", async () => {
    let attempts = 0;
    const errnos = [ECONNREFUSED, EADDRNOTAVAIL, ECONNREFUSED];
    const { asked, dial } = await forwarding(() => errnos[attempts++] ?? null);
    const socket = dial();
    socket.write("hello");
    expect(String((await once(socket, "data"))[0])).toBe("echo hello");
    expect(asked).toEqual([inside("127.0.0.1"), inside("::1"), inside("127.0.0.1"), inside("::1")]);
  });

  const isReset = async (socket: Socket) => {
    await isClosed(socket);
    return socket.errored;
  };

  it("resets a connection at once where waiting does not help, and when there is no server in time", async () => {
    const strict = await forwarding(() => EMFILE);
    expect(await isReset(strict.dial())).toMatchObject({ code: "ECONNRESET" });
    expect(strict.asked).toHaveLength(1);
    const late = await forwarding(() => ECONNREFUSED, { waitForServerMs: 0 });
    expect(await isReset(late.dial())).toMatchObject({ code: "ECONNRESET" });
    expect(late.asked).toHaveLength(2);
  });

  it("resets the connections that wait, and those that there are, when it is closed", async () => {
    const { runner, forwarded, asked, dial, sent } = await forwarding(() => ECONNREFUSED);
    const waiting = dial();
    await expect.poll(() => asked.length).toBeGreaterThan(2);
    runner.onFrame = ({ type, channel }) => {
      if (type === FrameType.connect) runner.send(FrameType.connected, channel, ends);
    };
    const other = dial();
    await expect.poll(() => sent(FrameType.connect).length).toBeGreaterThan(asked.length);
    await Promise.all([isClosed(waiting), isClosed(other), forwarded.close()]);
    await forwarded[Symbol.asyncDispose]();
    const refused = dial();
    await isClosed(refused);
    expect(refused.errored).toMatchObject({ code: "ECONNREFUSED" });
  });

  it.for([0, -1, 65_536, 1.5, Number.NaN])("has no port %s inside", async (port) => {
    const { link } = await place();
    expect(await failure(forwardPort(link, port, {}))).toMatchObject({
      code: "usage.invalid",
      hint: "a port is a whole number from 1 to 65535",
    });
  });

  it("is not forwarded to a port of the host that there is not, or that is taken, or after the end", async () => {
    const { link } = await place();
    expect(await failure(forwardPort(link, 3000, { hostPort: 65_536 }))).toMatchObject({
      code: "usage.invalid",
      hint: "a port is a whole number from 0 to 65535",
    });
    const server = createServer();
    onTestFinished(() => void server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    expect(await failure(forwardPort(link, 3000, { hostPort: port }))).toMatchObject({
      code: "sandbox.port-in-use",
      errno: "EADDRINUSE",
      message: expect.stringContaining(`port ${port}`),
      hint: expect.stringContaining("choose another port"),
    });
    link.close(gone);
    expect(await failure(forwardPort(link, 3000, {}))).toBe(gone);
  });

  it("has the port of the host that is asked for", async () => {
    const probe = createServer().listen(0, "127.0.0.1");
    await once(probe, "listening");
    const { port } = probe.address() as { port: number };
    probe.close();
    await once(probe, "close");
    const { forwarded } = await forwarding(() => null, { hostPort: port });
    expect(forwarded.port).toBe(port);
  });
});
