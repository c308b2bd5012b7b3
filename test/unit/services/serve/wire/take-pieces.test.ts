import { once } from "node:events";
import { createServer, get, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { takePieces } from "../../../../../src/services/serve/wire/take-pieces.js";

/** Calls `use` with an answer that has begun, and whose rest comes when `end` is called. */
async function withAnswer(use: (answer: IncomingMessage, end: () => void) => Promise<void>): Promise<void> {
  let end: () => void = () => undefined;
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-length": 6 });
    response.write("one");
    end = () => void response.end("two");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const sent = get({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  sent.on("error", () => undefined);
  try {
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    answer.on("error", () => undefined);
    await use(answer, () => end());
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

it("takes all pieces of a message", async () => {
  await withAnswer(async (answer, end) => {
    const pieces: string[] = [];
    const taken = takePieces(answer, (piece) => {
      pieces.push(String(piece));
      end();
    });
    await taken;
    expect(pieces.join("")).toBe("onetwo");
  });
});

it("fails with what `take` throws, and with a message that is cut off", async () => {
  await withAnswer(async (answer) => {
    const refused = new Error("refused");
    const taken = takePieces(answer, () => {
      throw refused;
    });
    await expect(taken).rejects.toBe(refused);
    expect(answer.destroyed).toBe(false);
  });
  await withAnswer(async (answer) => {
    await expect(takePieces(answer, () => void answer.destroy())).rejects.toThrow("closed before the end");
  });
});

it("fails with a message that is closed already", async () => {
  await withAnswer(async (answer) => {
    answer.destroy();
    await once(answer, "close");
    await expect(takePieces(answer, () => undefined)).rejects.toThrow("closed before the end");
  });
});
