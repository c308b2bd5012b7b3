import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import type { InsideConnection } from "../../../../src/sandbox/egress/inside-network.js";
import { encodeAddress } from "../../../../src/sandbox/network/sandbox-network.js";
import { uint32 } from "../channel/fake-runner.js";
import { failure } from "../played-sandbox.js";
import { at, ends, from, place, socketExit } from "./played-network.js";

const [EACCES, EMFILE, EADDRINUSE] = [13, 24, 98];
const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });

describe("a listener in the sandbox", () => {
  /** A runner that binds, and closes what it is asked to close. */
  async function listening(isClosing = true) {
    const opened = await place();
    const { runner, network } = opened;
    runner.onFrame = ({ type, channel }) => {
      if (type === FrameType.listen) runner.send(FrameType.bound, channel, encodeAddress(at));
      if (type === FrameType.kill && isClosing) runner.send(FrameType.exit, channel, socketExit());
    };
    const connections: InsideConnection[] = [];
    const listener = await network.listen(at, (connection) => connections.push(connection));
    return { ...opened, listener, connections };
  }

  it("has sixteen channels that wait for connections, and another one for each that came", async () => {
    const { runner, sent, connections } = await listening();
    await expect.poll(() => sent(FrameType.accept).length).toBe(16);
    expect(sent(FrameType.accept).every(({ payload }) => payload.equals(uint32(1)))).toBe(true);
    expect(sent(FrameType.listen)[0]?.payload).toEqual(
      Buffer.concat([Buffer.from([1, 0, 0, 0]), encodeAddress(at)]),
    );
    for (const channel of [2, 3]) runner.send(FrameType.connected, channel, ends);
    await expect.poll(() => sent(FrameType.accept).length).toBe(18);
    expect(connections.map(({ to, from }) => ({ to, from }))).toEqual([
      { to: at, from },
      { to: at, from },
    ]);
  });

  it("opens no other channel for one that ended without a connection", async () => {
    const { runner, link, sent } = await listening();
    await expect.poll(() => sent(FrameType.accept).length).toBe(16);
    runner.send(FrameType.exit, 2, socketExit(EMFILE));
    await link.ping();
    expect(sent(FrameType.accept)).toHaveLength(16);
    // But the next connection makes up for it.
    runner.send(FrameType.connected, 3, ends);
    await expect.poll(() => sent(FrameType.accept).length).toBe(18);
  });

  it("takes 2048 connections at a time, and another when one of them is over", async () => {
    const { runner, link, sent, connections } = await listening();
    await expect.poll(() => sent(FrameType.accept).length).toBe(16);
    for (let channel = 2; channel < 2050; channel++) {
      runner.send(FrameType.connected, channel, ends);
      if (channel % 16 === 1) await link.ping();
    }
    await expect.poll(() => connections.length).toBe(2048);
    await link.ping();
    expect(sent(FrameType.accept)).toHaveLength(2048);
    runner.send(FrameType.stdout, 2);
    runner.send(FrameType.exit, 2, socketExit());
    await expect.poll(() => sent(FrameType.accept).length).toBe(2049);
  });

  it("that is closed resets a connection that comes too late, and opens no channel more", async () => {
    const { runner, link, listener, sent, connections } = await listening(false);
    await expect.poll(() => sent(FrameType.accept).length).toBe(16);
    runner.send(FrameType.connected, 2, ends);
    await expect.poll(() => connections.length).toBe(1);
    await expect.poll(() => sent(FrameType.accept).length).toBe(17);
    const closing = listener.close();
    await expect.poll(() => sent(FrameType.kill, 1)).toHaveLength(1);
    runner.send(FrameType.connected, 3, ends);
    await expect.poll(() => sent(FrameType.kill, 3)).toHaveLength(1);
    runner.send(FrameType.exit, 1, socketExit());
    await closing;
    await link.ping();
    expect(connections).toHaveLength(1);
    expect(connections[0]?.stream.destroyed).toBe(false);
    expect(sent(FrameType.accept)).toHaveLength(17);
    await listener.close();
    expect(sent(FrameType.kill, 1)).toHaveLength(1);
  });

  it.for([
    [EADDRINUSE, "sandbox.port-in-use", "EADDRINUSE", "listens there already"],
    [EACCES, "sandbox.port-failed", "EACCES", "may not listen on ports as low"],
    // Closed without a reason, before it was bound.
    [0, "sandbox.port-failed", "EIO", "EIO"],
  ] as const)("that the runner refuses with %i is an error", async ([number, code, errno, words]) => {
    const { runner, network } = await place();
    runner.onFrame = ({ channel }) => runner.send(FrameType.exit, channel, socketExit(number));
    for (const opening of [
      network.listen(at, () => undefined),
      network.receiveDatagrams(at, () => undefined),
    ])
      expect(await failure(opening)).toMatchObject({
        code,
        errno,
        message: expect.stringMatching(new RegExp(`port 80 of 127.0.0.1 cannot be listened on.*${words}`)),
      });
  });

  it("whose sandbox ends before it is bound, or later, is over", async () => {
    const { link, network, sent } = await place();
    const opening = failure(network.listen(at, () => undefined));
    await expect.poll(() => sent(FrameType.listen)).toHaveLength(1);
    link.close(gone);
    expect(await opening).toBe(gone);
    const late = await listening(false);
    late.link.close(gone);
    await late.listener.close();
  });
});
