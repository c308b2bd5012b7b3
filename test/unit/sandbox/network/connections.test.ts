import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType, INITIAL_CREDIT } from "../../../../src/sandbox/channel/protocol.js";
import { encodeAddress } from "../../../../src/sandbox/network/sandbox-network.js";
import { uint32 } from "../channel/fake-runner.js";
import { failure } from "../played-sandbox.js";
import { at, ends, place, socketExit } from "./played-network.js";

const [EACCES, EADDRNOTAVAIL, ECONNREFUSED, EMFILE] = [13, 99, 111, 24];
const gone = new BrigError("over", { code: "sandbox.gone", reason: "closed" });

/** The same with a connection to a server inside, which the host has asked for, on channel 1. */
async function connected() {
  const opened = await place();
  const { runner, network } = opened;
  runner.onFrame = ({ type, channel }) => {
    if (type === FrameType.connect) runner.send(FrameType.connected, channel, ends);
  };
  const stream = await network.connect(at);
  const inputs = () => opened.sent(FrameType.input, 1).map(({ payload }) => payload);
  return { ...opened, stream, inputs };
}

describe("a connection to a server in the sandbox", () => {
  it("is asked for by its address, and carries bytes both ways until both have ended", async () => {
    const { runner, link, sent, stream, inputs } = await connected();
    expect(sent(FrameType.connect)[0]?.payload).toEqual(encodeAddress(at));
    stream.write("question");
    runner.send(FrameType.stdout, 1, Buffer.from("answer"));
    expect(String((await once(stream, "data"))[0])).toBe("answer");
    stream.end();
    await link.ping();
    expect(inputs().map(String)).toEqual(["question", ""]);
    const isEnd = once(stream, "end");
    runner.send(FrameType.stdout, 1);
    await isEnd;
    runner.send(FrameType.exit, 1, socketExit());
    await link.ping();
    expect(stream.destroyed).toBe(true);
    expect(stream.errored).toBeNull();
    expect(sent(FrameType.kill)).toEqual([]);
  });

  it.for([
    [ECONNREFUSED, "ECONNREFUSED", "nothing in the sandbox listens there"],
    [EACCES, "EACCES", "may not listen on ports as low"],
    [EADDRNOTAVAIL, "EADDRNOTAVAIL", "no such address"],
    [EMFILE, "EMFILE", "too many connections"],
    [5, "EIO", "EIO"],
  ] as const)("fails with the errno %i of the runner", async ([number, errno, words]) => {
    const { runner, link, network, sent } = await place();
    runner.onFrame = ({ type, channel }) => {
      if (type === FrameType.connect) runner.send(FrameType.exit, channel, socketExit(number));
    };
    expect(await failure(network.connect(at))).toMatchObject({
      code: "sandbox.port-failed",
      errno,
      message: expect.stringMatching(new RegExp(`port 80 of the sandbox cannot be reached: .*${words}`)),
      cause: expect.objectContaining({ code: errno }),
    });
    await link.ping();
    expect(sent(FrameType.kill)).toEqual([]);
  });

  it("is not asked for where the address is another than loopback's, or the sandbox is gone", async () => {
    const { link, network, sent } = await place();
    expect(await failure(network.connect({ ...at, address: "10.0.0.1" }))).toMatchObject({
      code: "usage.invalid",
    });
    for (const port of [-1, 65_536, 1.5])
      expect(await failure(network.connect({ ...at, port }))).toMatchObject({ code: "usage.invalid" });
    link.close(gone);
    expect(await failure(network.connect(at))).toBe(gone);
    expect(sent(FrameType.connect)).toEqual([]);
  });

  it("ends with the sandbox, before and after it is made", async () => {
    const early = await place();
    const waiting = failure(early.network.connect(at));
    await expect.poll(() => early.sent(FrameType.connect)).toHaveLength(1);
    early.link.close(gone);
    expect(await waiting).toBe(gone);
    const late = await connected();
    late.link.close(gone);
    await expect.poll(() => late.stream.errored).toBe(gone);
  });

  it("is not asked for with a signal that is aborted, and is reset by one that is aborted later", async () => {
    const { link, network, sent } = await place();
    const before = AbortSignal.abort(new Error("before"));
    expect(await failure(network.connect(at, { signal: before }))).toBe(before.reason);
    await link.ping();
    expect(sent(FrameType.connect)).toEqual([]);
    const controller = new AbortController();
    const waiting = failure(network.connect(at, { signal: controller.signal }));
    await expect.poll(() => sent(FrameType.connect)).toHaveLength(1);
    controller.abort(new Error("meanwhile"));
    expect(await waiting).toBe(controller.signal.reason);
    await expect.poll(() => sent(FrameType.kill, 1).map(({ payload }) => payload)).toEqual([uint32(0)]);
  });

  it("stays when the signal is aborted that only the wait for it had", async () => {
    const { runner, link, network, sent } = await place();
    runner.onFrame = ({ type, channel }) => {
      if (type === FrameType.connect) runner.send(FrameType.connected, channel, ends);
    };
    const controller = new AbortController();
    const stream = await network.connect(at, { signal: controller.signal });
    controller.abort();
    await link.ping();
    expect(stream.destroyed).toBe(false);
    expect(sent(FrameType.kill)).toEqual([]);
  });

  it("is reset inside when the host destroys it, but not once both directions have ended", async () => {
    const { link, sent, stream } = await connected();
    stream.destroy();
    await link.ping();
    expect(sent(FrameType.kill, 1).map(({ payload }) => payload)).toEqual([uint32(0)]);
    const other = await connected();
    other.runner.send(FrameType.stdout, 1);
    other.stream.resume();
    await once(other.stream, "end");
    other.stream.end();
    await once(other.stream, "finish");
    other.stream.destroy();
    await other.link.ping();
    expect(other.sent(FrameType.kill)).toEqual([]);
  });

  it("is still reset when only one direction has ended", async () => {
    const { runner, link, sent, stream } = await connected();
    stream.end();
    await once(stream, "finish");
    runner.send(FrameType.stdout, 1, Buffer.from("x"));
    await once(stream, "readable");
    stream.destroy();
    await link.ping();
    expect(sent(FrameType.kill, 1)).toHaveLength(1);
  });
});

describe("what is written to a connection", () => {
  it("goes in one frame if it is small, with no frame for an empty piece", async () => {
    const { link, stream, inputs } = await connected();
    stream.cork();
    for (const text of ["head ", "", "body"]) stream.write(text);
    stream.uncork();
    await link.ping();
    expect(inputs().map(String)).toEqual(["head body"]);
    stream.write("");
    stream.write("more");
    await link.ping();
    expect(inputs().map(String).join("")).toBe("head bodymore");
    expect(inputs().every(({ length }) => length > 0)).toBe(true);
  });

  it.for([
    [[8192, 8192], [16_384]],
    [
      [8192, 8193],
      [8192, 8193],
    ],
    [
      [65_536, 1],
      [65_536, 1],
    ],
    [[65_537], [65_536, 1]],
  ])("in pieces of %j goes in frames of %j", async ([pieces = [], frames]) => {
    const { stream, inputs } = await connected();
    stream.cork();
    for (const [index, bytes] of pieces.entries()) stream.write(Buffer.alloc(bytes, index + 1));
    stream.uncork();
    await expect.poll(() => inputs().map(({ length }) => length)).toEqual(frames);
    const all = Buffer.concat(pieces.map((bytes, index) => Buffer.alloc(bytes, index + 1)));
    expect(Buffer.concat(inputs()).equals(all)).toBe(true);
  });

  it("waits for credit by the byte, and goes on with it in the same order", async () => {
    const { runner, link, stream, inputs } = await connected();
    const data = Buffer.from(Array.from({ length: INITIAL_CREDIT + 300 }, (_, i) => i % 251));
    let wrote = false;
    stream.write(data, () => {
      wrote = true;
    });
    const sum = () => inputs().reduce((bytes, { length }) => bytes + length, 0);
    await expect.poll(sum).toBe(INITIAL_CREDIT);
    runner.send(FrameType.creditFromRunner, 1, uint32(299));
    await expect.poll(sum).toBe(INITIAL_CREDIT + 299);
    await link.ping();
    expect(wrote).toBe(false);
    runner.send(FrameType.creditFromRunner, 1, uint32(1));
    await expect.poll(() => wrote).toBe(true);
    await expect.poll(sum).toBe(data.length);
    expect(Buffer.concat(inputs()).equals(data)).toBe(true);
  });

  it("and waits for credit fails when the connection is destroyed, or the program breaks it", async () => {
    for (const how of ["destroyed", "broken"] as const) {
      const { runner, stream, inputs } = await connected();
      const wrote = new Promise<Error | null | undefined>((resolve) =>
        stream.write(Buffer.alloc(INITIAL_CREDIT + 1), resolve),
      );
      await expect.poll(() => inputs().reduce((bytes, { length }) => bytes + length, 0)).toBe(INITIAL_CREDIT);
      if (how === "destroyed") stream.destroy();
      else runner.send(FrameType.exit, 1, socketExit(104));
      const error = await wrote;
      if (how === "broken") expect(error).toMatchObject({ errno: "ECONNRESET" });
      else expect(error).toBeInstanceOf(Error);
      runner.send(FrameType.creditFromRunner, 1, uint32(1));
      await expect.poll(() => stream.destroyed).toBe(true);
      expect(inputs().reduce((bytes, { length }) => bytes + length, 0)).toBe(INITIAL_CREDIT);
    }
  });

  it("is not sent once the runner has closed the connection, and neither is its end", async () => {
    const { runner, link, stream, inputs } = await connected();
    runner.send(FrameType.stdout, 1);
    runner.send(FrameType.exit, 1, socketExit());
    await link.ping();
    stream.write("too late");
    stream.end();
    await link.ping();
    expect(inputs()).toEqual([]);
  });
});

describe("what is read from a connection", () => {
  it("is granted again by what was read, in steps of 64 KiB", async () => {
    const { runner, link, sent, stream } = await connected();
    stream.on("data", () => undefined);
    runner.send(FrameType.stdout, 1, Buffer.alloc(65_535));
    await link.ping();
    expect(sent(FrameType.credit)).toEqual([]);
    runner.send(FrameType.stdout, 1, Buffer.alloc(1));
    await expect
      .poll(() => sent(FrameType.credit, 1).map(({ payload }) => payload))
      .toEqual([uint32(65_536)]);
    // As much as was granted at first, and again: any more would be refused.
    for (let i = 0; i < 4; i++) runner.send(FrameType.stdout, 1, Buffer.alloc(65_536));
    await link.ping();
    expect(sent(FrameType.credit).map(({ payload }) => payload)).toEqual(
      Array.from({ length: 5 }, () => uint32(65_536)),
    );
  });

  it("is not granted again once it has ended", async () => {
    const { runner, link, sent, stream } = await connected();
    runner.send(FrameType.stdout, 1, Buffer.alloc(65_536));
    runner.send(FrameType.stdout, 1);
    await link.ping();
    stream.resume();
    await once(stream, "end");
    await link.ping();
    expect(sent(FrameType.credit)).toEqual([]);
  });
});

it("a reset by a program inside does not end the process of a caller who listens for no error", async () => {
  const { runner, stream } = await connected();
  runner.send(FrameType.exit, 1, socketExit(104));
  await expect.poll(() => stream.errored).toMatchObject({ errno: "ECONNRESET" });
});
