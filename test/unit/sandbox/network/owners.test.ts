import { expect, it } from "vitest";
import {
  ExitKind,
  FileOperation,
  FrameType,
  OWNER_RECORD_BYTES,
} from "../../../../src/sandbox/channel/protocol.js";
import { encodeAddress, OwnerSearch } from "../../../../src/sandbox/network/sandbox-network.js";
import { exitPayload, type SentFrame, uint64 } from "../channel/fake-runner.js";
import { playedLink } from "../channel/played-link.js";

const to = { address: "127.0.0.1", port: 80 };
const connectionFrom = (port: number) => ({ from: { address: "127.0.0.1", port }, to });

function ownerRecord({ channel = 7, pid = 12, program = Buffer.from("curl") } = {}): Buffer {
  const record = Buffer.alloc(OWNER_RECORD_BYTES);
  record.writeUInt32LE(channel, 0);
  record.writeUInt32LE(pid, 4);
  program.copy(record, 8);
  return record;
}

/** A search in which the runner is asked, and the requests that have come to it. */
async function search() {
  const { runner, link } = await playedLink();
  const requests = () => runner.frames.filter(({ type }) => type === FrameType.file);
  const asked = async (count: number): Promise<SentFrame> => {
    await expect.poll(() => requests().length).toBe(count);
    const request = requests()[count - 1];
    if (request === undefined) throw new Error("no request");
    return request;
  };
  const answer = (request: SentFrame, ...records: Buffer[]) =>
    runner.send(FrameType.exit, request.channel, fileExit(Buffer.concat(records)));
  return { owners: new OwnerSearch(link), link, requests, asked, answer };
}

/** The EXIT of a file operation that has gone well, with what it found. */
function fileExit(result: Buffer): Buffer {
  const head = exitPayload(0, ExitKind.file);
  uint64(result.length).copy(head, 16);
  return Buffer.concat([head, result]);
}

it("a connection has the process that the runner says, by both of its addresses", async () => {
  const { owners, asked, answer } = await search();
  const found = owners.find(connectionFrom(40_000));
  const request = await asked(1);
  expect(request.payload[0]).toBe(FileOperation.owners);
  expect(request.payload.subarray(-40)).toEqual(
    Buffer.concat([encodeAddress(connectionFrom(40_000).from), encodeAddress(to)]),
  );
  answer(request, ownerRecord());
  expect(await found).toEqual({ channel: 7, pid: 12, program: "curl" });
});

it("no process is what the runner does not find", async () => {
  const { owners, asked, answer } = await search();
  const found = owners.find(connectionFrom(40_000));
  answer(await asked(1), ownerRecord({ pid: 0 }));
  expect(await found).toBeNull();
});

it("a program's name ends at its first zero byte, or fills its record, and has no control sequences", async () => {
  const { owners, asked, answer } = await search();
  const names = [Buffer.from("a\0b"), Buffer.alloc(OWNER_RECORD_BYTES - 8, "n"), Buffer.from("\x1b[2J é~ ")];
  const found = [];
  for (const [index, program] of names.entries()) {
    const one = owners.find(connectionFrom(40_000 + index));
    answer(await asked(index + 1), ownerRecord({ program }));
    found.push((await one)?.program);
  }
  expect(found).toEqual(["a", "n".repeat(OWNER_RECORD_BYTES - 8), "?[2J ?~ "]);
});

it("all questions that come during a search share the next one, in their order", async () => {
  const { owners, requests, asked, answer } = await search();
  const first = owners.find(connectionFrom(1));
  const request = await asked(1);
  const others = [owners.find(connectionFrom(2)), owners.find(connectionFrom(3))];
  expect(requests()).toHaveLength(1);
  answer(request, ownerRecord({ pid: 1 }));
  expect(await first).toMatchObject({ pid: 1 });
  answer(await asked(2), ownerRecord({ pid: 2 }), ownerRecord({ pid: 3 }));
  expect((await Promise.all(others)).map((owner) => owner?.pid)).toEqual([2, 3]);
  expect(requests()).toHaveLength(2);
  // A search that is over does not keep the next one from beginning.
  const last = owners.find(connectionFrom(4));
  answer(await asked(3), ownerRecord({ pid: 4 }));
  expect(await last).toMatchObject({ pid: 4 });
});

it("an answer with too few owners is refused, and the next question is asked", async () => {
  const { owners, asked, answer } = await search();
  const first = owners.find(connectionFrom(1));
  answer(await asked(1));
  await expect(first).rejects.toMatchObject({ code: "protocol.invalid" });
  const second = owners.find(connectionFrom(2));
  answer(await asked(2), ownerRecord());
  expect(await second).toMatchObject({ pid: 12 });
});
