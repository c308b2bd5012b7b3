import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { expect, it } from "vitest";
import { UpdateQueue } from "../../../../../src/services/acp/updates/update-queue.js";

const chunk = (text: string): SessionUpdate => ({
  sessionUpdate: "agent_message_chunk",
  content: { type: "text", text },
});
const mode: SessionUpdate = { sessionUpdate: "current_mode_update", currentModeId: "auto" };

function open() {
  const sent: SessionUpdate[] = [];
  let release: () => void = () => undefined;
  const first = new Promise<void>((resolve) => {
    release = resolve;
  });
  let isStuck = false;
  const queue = new UpdateQueue(
    async (update) => {
      sent.push(update);
      await first;
    },
    {
      onStuck: () => {
        isStuck = true;
      },
    },
  );
  return { queue, sent, release: () => release(), isStuck: () => isStuck };
}

it("keeps the order, and joins the pieces of a message that wait", async () => {
  const { queue, sent, release } = open();
  queue.push(chunk("a"));
  queue.push(chunk("b"), chunk("c"), mode, chunk("d"));
  release();
  await queue.drained();
  expect(sent).toEqual([chunk("a"), chunk("bc"), mode, chunk("d")]);
});

it("gives a client up that does not read", async () => {
  const { queue, sent, release, isStuck } = open();
  for (let at = 0; at < 20_000; at++) queue.push(mode);
  expect(isStuck()).toBe(true);
  release();
  await queue.drained();
  expect(sent).toHaveLength(1);
});

it("sends an earlier conversation of any length", async () => {
  const { queue, sent, release, isStuck } = open();
  queue.push(...Array.from({ length: 20_000 }, () => mode));
  release();
  await queue.drained();
  expect(isStuck()).toBe(false);
  expect(sent).toHaveLength(20_000);
});
