import { once } from "node:events";
import { PassThrough, Writable } from "node:stream";
import { expect, it } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { Connection } from "../../../../src/services/exec-server/connection.js";
import type { CommonOptions } from "../../../../src/services/exec-server/sandbox-set.js";
import { serveStdio } from "../../../../src/services/exec-server/serve-stdio.js";
import { SessionList } from "../../../../src/services/exec-server/session-list.js";

/** No sandbox is opened in these tests. */
const sandbox: CommonOptions = {
  engine: new Promise<never>(() => undefined),
  environment: readEnvironment({ HOME: "/home/user" }),
  onWarning: () => undefined,
};

function sessionList(): SessionList {
  return new SessionList({ sandbox, directory: "/work", isResumable: true });
}

it("the end of the input is seen even if the client reads no refusal", async () => {
  const input = new PassThrough();
  let unread = "";
  const output = new Writable({
    highWaterMark: 4,
    write: (chunk) => {
      unread += chunk;
    },
  });
  const signal = new AbortController().signal;
  const served = serveStdio({ input, output, sandbox, directory: "/work", signal });
  input.end("no message\n".repeat(100));
  await once(input, "end");
  await served;
  expect(unread).toContain("the message is not JSON");
});

it("a client that reads none of its refusals does not fill the memory with them", () => {
  let sent = 0;
  const connection = new Connection(sessionList(), async (text) => {
    sent += text.length;
    await new Promise(() => undefined);
  });
  for (let count = 0; count < 20_000; count++) connection.receive("no message");
  expect(sent).toBeGreaterThan(1024 * 1024);
  expect(sent).toBeLessThan(1024 * 1024 + 1000);
});

it("a message that comes after the client has gone opens no session", async () => {
  const sessions = sessionList();
  const initialize = JSON.stringify({ id: 1, method: "initialize", params: { clientName: "late" } });
  for (let count = 0; count < 100; count++) {
    const gone = new Connection(sessions, async () => undefined);
    gone.close();
    gone.receive(initialize);
  }
  const answers: string[] = [];
  const next = new Connection(sessions, async (text) => void answers.push(text));
  next.receive(initialize);
  await expect.poll(() => answers).toEqual([expect.stringContaining("sessionId")]);
  next.close();
  await sessions.close();
});
