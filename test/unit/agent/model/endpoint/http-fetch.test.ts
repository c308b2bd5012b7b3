import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { postJson } from "../../../../../src/agent/model/endpoint/http-fetch.js";
import { NO_PROXIES } from "../../../../../src/lib/proxy/proxies.js";

/** A server that answers every request with this text, or never. */
async function serverThatSays(answer: string | null): Promise<URL> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => {
      if (answer !== null) socket.write(answer);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

const post = { headers: {}, body: "{}", signal: new AbortController().signal, proxies: NO_PROXIES };

it("fails when the server changes the protocol, which ends the connection without an answer", async () => {
  const url = await serverThatSays(
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n",
  );
  const silence = new AbortController().signal;
  await expect(postJson(url, { ...post, silence })).rejects.toThrow("closed without an answer");
});

it("fails with the reason of a silence that is already over", async () => {
  const url = await serverThatSays(null);
  const silence = AbortSignal.abort(new Error("silent for too long"));
  await expect(postJson(url, { ...post, silence })).rejects.toThrow("silent for too long");
});
