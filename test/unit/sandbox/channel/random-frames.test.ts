import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { BrigError } from "../../../../src/errors.js";
import { FrameType } from "../../../../src/sandbox/channel/protocol.js";
import { RunnerLink } from "../../../../src/sandbox/channel/runner-link.js";
import { sandboxFiles } from "../../../../src/sandbox/files/files.js";
import { exec } from "../../../../src/sandbox/process/run-to-end.js";
import { nearly, runs } from "../../../support/fuzz.js";
import { chunked, chunking } from "./chunking.js";
import { exitPayload, FakeRunner, frame, multiplexed, uint32, uint64 } from "./fake-runner.js";

/** What a runner says in answer to a command on channel 1 and two requests for files, as the engine passes it on. */
const conversation = [
  multiplexed(1, frame(FrameType.stdout, 1, Buffer.from("out"))),
  multiplexed(1, frame(FrameType.creditFromRunner, 1, uint32(1000))),
  multiplexed(
    1,
    Buffer.concat([
      frame(FrameType.stderr, 1, Buffer.from("err")),
      frame(FrameType.ackFromRunner, 0, uint64(2)),
    ]),
  ),
  multiplexed(2, Buffer.from("the bridge says something")),
  multiplexed(1, frame(FrameType.exit, 2, Buffer.concat([exitPayload(0, 4), Buffer.alloc(72, 1)]))),
  multiplexed(1, frame(FrameType.stdout, 3, Buffer.concat([uint32(20), Buffer.alloc(20, 0x2f)]))),
  multiplexed(1, frame(FrameType.exit, 3, Buffer.concat([exitPayload(0, 4), Buffer.alloc(8)]))),
  multiplexed(1, frame(FrameType.exit, 1, exitPayload(3))),
  multiplexed(1, frame(FrameType.late, 1, Buffer.from("late"))),
];
const good = [
  Buffer.concat(conversation),
  Buffer.concat(conversation.toReversed()),
  ...conversation,
  multiplexed(1, frame(FrameType.bound, 1, Buffer.alloc(6))),
  multiplexed(1, frame(FrameType.connected, 1, Buffer.alloc(16))),
  multiplexed(1, frame(FrameType.datagramFromRunner, 1, Buffer.alloc(40))),
];

/** What was found to be wrong once, and is tried each time. */
const found: [Buffer, number[]][] = [
  [Buffer.from("0100000000000000", "hex"), []],
  [Buffer.alloc(100_000, 1), [0.5]],
];

describe("a runner that says nearly what is right", () => {
  it("ends calls with a result or a refusal, gives no output that it did not send, and leaves nobody waiting", async () => {
    let results = 0;
    await fc.assert(
      fc.asyncProperty(nearly(good), chunking, async (bytes, cuts) => {
        const runner = new FakeRunner();
        const link = await RunnerLink.open({
          token: Buffer.alloc(32),
          dial: runner.dial,
          diagnose: async () => new BrigError("gone", { code: "sandbox.gone", reason: "killed" }),
          reconnectForMs: 0,
          onLate: () => undefined,
        });
        const context = { link, cwd: "/", env: {}, onStuck: () => undefined };
        const files = sandboxFiles(context);
        const calls = [exec(context, ["true"], {}), files.stat("/a"), files.list("/b")].map((call) =>
          (call as Promise<unknown>).catch((error: unknown) => error),
        );
        for (const chunk of chunked(bytes, cuts)) runner.passOn(chunk);
        for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
        link.close(new BrigError("over", { code: "sandbox.gone", reason: "closed" }));
        const [command, ...others] = await Promise.all(calls);
        for (const outcome of [command, ...others])
          if (outcome instanceof Error)
            expect(outcome).toMatchObject({
              code: expect.stringMatching(/^(?:protocol|sandbox|file|exec)\./),
            });
        if (!(command instanceof Error)) {
          results++;
          const { output } = command as { output: string };
          expect(output.length).toBeLessThanOrEqual(bytes.length);
        }
      }),
      { numRuns: runs({ short: 200, deep: 10_000 }), examples: found },
    );
    expect(results).toBeGreaterThan(0);
  });
});
