import { Duplex } from "node:stream";
import { expect, it } from "vitest";
import { RunnerStream } from "../../../../src/sandbox/channel/runner-stream.js";

/** What was written in one system call each. */
function recorded() {
  const writes: string[] = [];
  const stream = new Duplex({
    read: () => undefined,
    write(piece: Buffer, _encoding, done) {
      writes.push(piece.toString());
      done();
    },
    writev(pieces, done) {
      writes.push(pieces.map(({ chunk }) => String(chunk)).join(""));
      done();
    },
  });
  const events = { onFrame: () => undefined, onEnd: () => undefined };
  return { writes, runner: new RunnerStream({ stream }, events) };
}

/** Writes three frames in one turn of the event loop, each after the one before could have been sent. */
async function writeThree(runner: RunnerStream, how: { mayWait: boolean }): Promise<void> {
  for (const text of ["a", "b", "c"]) {
    runner.write(Buffer.from(text), how);
    await new Promise<void>((resolve) => process.nextTick(resolve));
  }
}

it("sends a frame at once", async () => {
  const { writes, runner } = recorded();
  await writeThree(runner, { mayWait: false });
  expect(writes).toEqual(["a", "b", "c"]);
});

it("sends frames that may wait together, when the turn of the event loop ends", async () => {
  const { writes, runner } = recorded();
  await writeThree(runner, { mayWait: true });
  expect(writes).toEqual([]);
  await new Promise(setImmediate);
  expect(writes).toEqual(["abc"]);
});

it("sends what waits before it is destroyed", async () => {
  const { writes, runner } = recorded();
  await writeThree(runner, { mayWait: true });
  runner.destroy();
  expect(writes).toEqual(["abc"]);
});
