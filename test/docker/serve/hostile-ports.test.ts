import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RemoteSandbox } from "../../../src/services/serve/client/client-types.js";
import { startLying, startShowing } from "../../support/port-server.js";
import { openServed, type Served } from "../../support/served.js";
import { openSocket } from "../../support/web-socket-client.js";

let served: Served;
let sandbox: RemoteSandbox;

beforeAll(async () => {
  served = await openServed();
  sandbox = await served.client.createSandbox();
});

afterAll(async () => {
  await served[Symbol.asyncDispose]();
});

const urlOf = (port: number) => `${served.url}/v1/sandboxes/${sandbox.id}/ports/${port}/`;
const headers = () => ({ authorization: `Bearer ${served.tokens[0]}` });

async function status(port: number, options: RequestInit = {}): Promise<{ status: number; text: string }> {
  const response = await fetch(urlOf(port), { headers: headers(), ...options });
  return { status: response.status, text: await response.text() };
}

const OK = "HTTP/1.1 200 OK\r\n";
let port = 4000;

describe("a program that does not speak HTTP as it should", () => {
  it.each([
    ["something else", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["two lengths", `${OK}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    ["a length and chunks", `${OK}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a header over two lines", `${OK}X-One: a\r\n b\r\n\r\n`],
    ["a bare line feed in a header", `${OK}X-One: a\nX-Two: b\r\n\r\n`],
    ["a NUL in a header", `${OK}X-One: a\0b\r\n\r\n`],
    ["a name with a space", `${OK}X One: a\r\n\r\n`],
    [
      "another protocol that nobody asked for",
      "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    ],
    ["nothing", ""],
    ["half a head", `${OK}X-One: `],
    ["more headers than anybody needs", `${OK}${"X: y\r\n".repeat(5000)}\r\n`],
    ["a header that is far too long", `${OK}X-One: ${"a".repeat(300_000)}\r\n\r\n`],
  ])("is answered for with 502: %s", async (_, answer) => {
    port++;
    await startLying(sandbox, port, { answer, last: "end" });
    const answered = await status(port);
    expect(answered).toMatchObject({ status: 502, text: expect.stringContaining("sandbox.port-failed") });
    expect(answered.text).not.toContain("X-One");
  });

  it.each([
    ["headers", OK, "X-One: abcdefghijklmnopqrstuvwxyz\r\n"],
    ["early answers", "", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"],
  ])("is cut off with 502 when it sends no end of %s", async (_, answer, again) => {
    port++;
    await startLying(sandbox, port, { answer, last: "repeat", again });
    expect((await status(port)).status).toBe(502);
  });

  it("cannot give one client the answer of another: what follows an answer is dropped", async () => {
    port++;
    const answer = `${OK}Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond`;
    await startLying(sandbox, port, { answer });
    const socket = connect(served.port, "127.0.0.1");
    let text = "";
    socket.on("data", (data) => {
      text += data;
    });
    const request = `GET ${new URL(urlOf(port)).pathname} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${served.tokens[0]}\r\n\r\n`;
    socket.write(request);
    await expect.poll(() => text).toMatch(/\r\n\r\nok$/);
    socket.write("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    await once(socket, "close");
    expect(text).toContain('"maxSandboxes"');
    expect(text).not.toContain("second");
  });

  it("may answer before it has read a request, and break an answer off", async () => {
    port++;
    await startLying(sandbox, port, { answer: `${OK}Content-Length: 2\r\n\r\nok` });
    const body = Buffer.alloc(32 * 1024 * 1024);
    expect(await status(port, { method: "POST", body })).toEqual({ status: 200, text: "ok" });
    port++;
    await startLying(sandbox, port, { answer: `${OK}Content-Length: 20\r\n\r\nok`, last: "end" });
    await expect(status(port)).rejects.toThrow();
  });

  it("that answers without end fills no memory, and ends with its client", async () => {
    port++;
    await startLying(sandbox, port, {
      answer: `${OK}\r\n`,
      last: "repeat",
      again: "x".repeat(65_536),
    });
    const leaving = new AbortController();
    const response = await fetch(urlOf(port), { headers: headers(), signal: leaving.signal });
    const reader = response.body?.getReader();
    await reader?.read();
    // Nobody reads on: what is on the way stops growing.
    let before = -1;
    await expect
      .poll(async () => {
        const sent = Number(
          (await sandbox.exec(["sh", "-c", "cat /proc/net/dev | awk '/lo:/ {print $2}'"])).stdout,
        );
        const hasStopped = sent === before;
        before = sent;
        return hasStopped;
      })
      .toBe(true);
    expect(before).toBeLessThan(64 * 1024 * 1024);
    leaving.abort();
    await expect
      .poll(async () =>
        (await sandbox.exec(["sh", "-c", `ss -tn 2>/dev/null | grep -c ':${port} ' || true`])).stdout.trim(),
      )
      .toMatch(/^0?$/);
  });

  it("cannot make a WebSocket of a connection to something else", async () => {
    port++;
    await startLying(sandbox, port, {
      answer: "HTTP/1.1 101 Yes\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    });
    await expect(openSocket(urlOf(port), { headers: headers() })).rejects.toThrow("502");
    port++;
    await startLying(sandbox, port, { answer: `${OK}Content-Length: 2\r\n\r\nok` });
    await expect(openSocket(urlOf(port), { headers: headers() })).rejects.toThrow("200");
  });
});

describe("a client", () => {
  it("cannot send a second request inside of the first one, nor name headers that the server needs as its own", async () => {
    port++;
    await startShowing(sandbox, port);
    const path = new URL(urlOf(port)).pathname;
    const send = async (lines: string[], body = "") => {
      const socket = connect(served.port, "127.0.0.1");
      let text = "";
      socket.on("data", (data) => {
        text += data;
      });
      socket.on("error", () => undefined);
      const all = [
        `POST ${path} HTTP/1.1`,
        "Host: localhost",
        `Authorization: Bearer ${served.tokens[0]}`,
        ...lines,
      ];
      socket.write(`${all.join("\r\n")}\r\n\r\n${body}`);
      await once(socket, "close");
      return text;
    };
    const inner = "GET /inner HTTP/1.1\r\nHost: x\r\n\r\n";
    const both = ["Content-Length: 5", "Transfer-Encoding: chunked", "Connection: close"];
    expect(await send(both, `0\r\n\r\n${inner}`)).toMatch(/^HTTP\/1.1 400 /);
    const strange = ["Transfer-Encoding: xchunked", "Connection: close"];
    expect(await send(strange, `0\r\n\r\n${inner}`)).toMatch(/^HTTP\/1.1 (?:400|501) /);
    const named = ["Connection: close, content-length, host", `Content-Length: ${inner.length}`];
    expect(await send(named, inner)).toContain(`"body":${JSON.stringify(inner)}`);
  });

  it("has at most so many connections to a sandbox at once, and all places again when they are over", async () => {
    port++;
    await startLying(sandbox, port, { answer: "" });
    const leaving = new AbortController();
    const statuses: number[] = [];
    const hanging = Array.from({ length: 300 }, async () => {
      const response = await fetch(urlOf(port), { headers: headers(), signal: leaving.signal }).catch(
        () => null,
      );
      if (response !== null) statuses.push(response.status);
    });
    await expect.poll(() => statuses.length).toBe(300 - 256);
    expect(new Set(statuses)).toEqual(new Set([429]));
    leaving.abort();
    await Promise.all(hanging);
    port++;
    await startShowing(sandbox, port);
    await expect.poll(async () => (await status(port)).status).toBe(200);
  });
});

it("the service had no fault in all of this", () => {
  expect(served.warnings).toEqual([]);
});
