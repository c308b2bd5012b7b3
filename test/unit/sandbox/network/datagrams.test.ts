import { expect, it } from "vitest";
import { ExitKind, FrameType, INITIAL_CREDIT } from "../../../../src/sandbox/channel/protocol.js";
import { encodeAddress, SandboxNetwork } from "../../../../src/sandbox/network/sandbox-network.js";
import { exitPayload, uint32 } from "../channel/fake-runner.js";
import { playedLink } from "../channel/played-link.js";

const at = { address: "127.0.0.1", port: 53 };
const from = encodeAddress({ address: "127.0.0.1", port: 40_000 });

/** Takes datagrams on channel 1 of a runner, which closes the socket when it is asked to if `isClosing`. */
async function receiving({ isClosing = true } = {}) {
  const { runner, link } = await playedLink();
  const socketExit = exitPayload(0, ExitKind.socket);
  runner.onFrame = ({ type, channel }) => {
    if (type === FrameType.listen) runner.send(FrameType.bound, channel, encodeAddress(at));
    if (type === FrameType.kill && isClosing) runner.send(FrameType.exit, channel, socketExit);
  };
  const taken: Buffer[] = [];
  const replies: ((data: Buffer) => void)[] = [];
  const listener = await new SandboxNetwork(link).receiveDatagrams(at, (data, reply) => {
    taken.push(data);
    replies.push(reply);
  });
  const sent = (wanted: number) => runner.frames.filter(({ type }) => type === wanted);
  const arrives = (data: Buffer) => runner.send(FrameType.datagramFromRunner, 1, Buffer.concat([from, data]));
  return { runner, link, listener, taken, replies, sent, arrives };
}

it("a datagram comes without the address that it is from, which its reply goes to", async () => {
  const { taken, replies, sent, arrives } = await receiving();
  arrives(Buffer.from("question"));
  await expect.poll(() => taken.map(String)).toEqual(["question"]);
  replies[0]?.(Buffer.from("answer"));
  await expect.poll(() => sent(FrameType.datagram)).toHaveLength(1);
  expect(sent(FrameType.datagram)[0]).toMatchObject({
    channel: 1,
    payload: Buffer.concat([from, Buffer.from("answer")]),
  });
});

it("a reply is sent if it fits into a datagram, and lost if it does not", async () => {
  const { link, taken, replies, sent, arrives } = await receiving();
  arrives(Buffer.from("question"));
  await expect.poll(() => taken).toHaveLength(1);
  replies[0]?.(Buffer.alloc(65_508));
  replies[0]?.(Buffer.alloc(65_507));
  await link.ping();
  expect(sent(FrameType.datagram).map(({ payload }) => payload.length - from.length)).toEqual([65_507]);
});

it("what has come is granted again in quarters of the first credit, each once", async () => {
  const { link, sent, arrives } = await receiving();
  const quarter = INITIAL_CREDIT / 4;
  arrives(Buffer.alloc(quarter / 2 - from.length));
  await link.ping();
  expect(sent(FrameType.credit)).toEqual([]);
  for (let i = 0; i < 3; i++) arrives(Buffer.alloc(quarter / 2 - from.length));
  await expect.poll(() => sent(FrameType.credit)).toHaveLength(2);
  expect(sent(FrameType.credit).map(({ channel, payload }) => [channel, payload])).toEqual([
    [1, uint32(quarter)],
    [1, uint32(quarter)],
  ]);
});

it("a socket that is closed takes no datagram and sends no reply, also while the runner still has it", async () => {
  const { runner, link, listener, taken, replies, sent, arrives } = await receiving({ isClosing: false });
  arrives(Buffer.from("question"));
  await expect.poll(() => taken).toHaveLength(1);
  const over = listener.close();
  await expect.poll(() => sent(FrameType.kill)).toHaveLength(1);
  arrives(Buffer.from("too late"));
  replies[0]?.(Buffer.from("too late"));
  await link.ping();
  expect(taken).toHaveLength(1);
  expect(sent(FrameType.datagram)).toEqual([]);
  runner.send(FrameType.exit, 1, exitPayload(0, ExitKind.socket));
  await over;
  await listener.close();
  expect(sent(FrameType.kill)).toHaveLength(1);
});

it.for([
  ["is shorter than an address", FrameType.datagramFromRunner, Buffer.alloc(from.length - 1)],
  ["is output", FrameType.stdout, Buffer.from("x")],
  ["is credit", FrameType.creditFromRunner, uint32(1)],
] as const)("what arrives and %s loses the sandbox", async ([, type, payload]) => {
  const { runner, link } = await receiving();
  const gone = new Promise((resolve) => {
    link.onGone = resolve;
  });
  runner.send(type, 1, payload);
  expect(await gone).toMatchObject({ code: "protocol.invalid" });
});
