import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { readEnvironment } from "../../../../src/lib/env.js";
import { connectEngine } from "../../../../src/sandbox/docker/connect.js";

/** An engine that is asked for its version and has not answered yet. */
async function connecting() {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const asked = once(server, "request");
  const { port } = server.address() as AddressInfo;
  const connection = connectEngine({
    env: readEnvironment({ HOME: "/home/user" }),
    endpoint: `tcp://127.0.0.1:${port}`,
  });
  connection.catch(() => undefined);
  const [, response] = (await asked) as [unknown, ServerResponse];
  return { connection, response };
}

const version = {
  Version: "20.10.24",
  ApiVersion: "1.41",
  MinAPIVersion: "1.12",
  Arch: "amd64",
  Os: "linux",
};

describe("an engine on a busy machine", () => {
  afterEach(() => void vi.useRealTimers());

  it("has half a minute to say which version it is", async () => {
    const { connection, response } = await connecting();
    vi.advanceTimersByTime(29_000);
    response.end(JSON.stringify(version));
    expect((await connection).endpoint).toMatch(/^tcp:/);
  });

  it("is given up after that", async () => {
    const { connection } = await connecting();
    vi.advanceTimersByTime(30_000);
    await expect(connection).rejects.toMatchObject({
      code: "engine.unreachable",
      message: expect.stringMatching(/named by the given address, does not answer: timed out$/),
    });
  });
});
