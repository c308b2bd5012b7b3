import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { buffer } from "node:stream/consumers";
import { describe, expect } from "vitest";
import { WebSocket } from "ws";
import type { Sandbox } from "../../../../src/sandbox/sandbox.js";
import { sandboxTest } from "../../../support/sandbox.js";

/** Runs a server inside; it says when it listens. */
async function serve(sandbox: Sandbox, script: string, ...args: string[]) {
  const server = await sandbox.spawn(["python3", "-uc", script, ...args], { stdin: "closed" });
  await once(server.stdout, "data");
  return server;
}

const http = `
import http.server, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.path.encode())
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        self.send_response(200); self.send_header('Content-Length', str(len(body))); self.end_headers(); self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Page)
print('ready'); server.serve_forever()`;

/** Echoes one frame of a web socket back: enough of RFC 6455 for a client that sends a short text. */
const webSocket = `
import socket, base64, hashlib, re
l = socket.create_server(('127.0.0.1', 3003)); print('ready')
c, _ = l.accept(); request = c.recv(65536).decode()
key = re.search('Sec-WebSocket-Key: (.*)\\r', request)[1] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
c.sendall(f'HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: {accept}\\r\\n\\r\\n'.encode())
frame = c.recv(65536); length = frame[1] & 127; mask = frame[2:6]
text = bytes(b ^ mask[i % 4] for i, b in enumerate(frame[6:6 + length]))
c.sendall(bytes([0x81, length]) + text); c.recv(1)`;

describe("a port of the sandbox", () => {
  sandboxTest(
    "is reachable at 127.0.0.1 of this machine, and nowhere once it is closed",
    async ({ sandbox }) => {
      const server = await serve(sandbox, http, "3001");
      await using port = await sandbox.forward(3001);
      expect(port).toMatchObject({ sandboxPort: 3001, url: `http://127.0.0.1:${port.port}` });
      const answers = Array.from({ length: 20 }, async (_, i) => (await fetch(`${port.url}/${i}`)).text());
      expect(await Promise.all(answers)).toEqual(Array.from({ length: 20 }, (_, i) => `/${i}`));
      const body = randomBytes(8 << 20);
      const breaking = setInterval(() => sandbox.link.breakStream(), 50);
      const response = await fetch(port.url, { method: "POST", body });
      const echoed = Buffer.from(await response.arrayBuffer());
      clearInterval(breaking);
      expect(sha256(echoed)).toBe(sha256(body));
      await server.kill();
      await port.close();
      await expect(fetch(port.url)).rejects.toThrow();
    },
  );

  sandboxTest("is not reachable from another machine", async ({ sandbox }) => {
    await using port = await sandbox.forward(3001);
    const all = createServer().listen(port.port, "127.0.0.2");
    await once(all, "listening"); // it would fail if the port were bound for all addresses
    all.close();
  });

  sandboxTest("carries web sockets", async ({ sandbox }) => {
    await serve(sandbox, webSocket);
    await using port = await sandbox.forward(3003);
    const client = new WebSocket(port.url.replace("http", "ws"));
    await once(client, "open");
    client.send("hello");
    const [message] = await once(client, "message");
    expect(String(message)).toBe("hello");
    client.terminate();
  });

  sandboxTest("waits for a server that starts late, on either address of localhost", async ({ sandbox }) => {
    await using port = await sandbox.forward(3004, { waitForServerMs: 200_000 });
    const client = connect({ port: port.port, allowHalfOpen: true });
    client.end("question");
    const late =
      "import socket\nl = socket.create_server(('::1', 3004), family=socket.AF_INET6); c, _ = l.accept(); d = c.makefile().read(); c.sendall(d[::-1].encode())";
    const server = await sandbox.spawn(["sh", "-c", 'sleep 0.5; exec python3 -c "$1"', "sh", late]);
    expect((await buffer(client)).toString()).toBe("noitseuq");
    await server.exit;
  });

  sandboxTest(
    "resets connections without a server, and those of a server that is killed",
    async ({ sandbox }) => {
      await using port = await sandbox.forward(3005, { waitForServerMs: 0 });
      const refused = connect(port.port);
      await expect(buffer(refused)).rejects.toMatchObject({ code: "ECONNRESET" });
      const hold =
        "import socket\nl = socket.create_server(('127.0.0.1', 3005)); print('ready')\nc, _ = l.accept(); c.sendall(b'begun')\nwhile True: c.recv(1) and exit()";
      const server = await serve(sandbox, hold);
      const client = connect({ port: port.port, allowHalfOpen: true });
      await once(client, "data");
      const ended = once(client, "end");
      await server.kill();
      await ended;
      client.destroy();
    },
  );

  sandboxTest(
    "that is taken on this machine is refused by name, as is what is no port",
    async ({ sandbox }) => {
      const taken = createServer().listen(0, "127.0.0.1");
      await once(taken, "listening");
      const hostPort = (taken.address() as { port: number }).port;
      await expect(sandbox.forward(3006, { hostPort })).rejects.toMatchObject({
        code: "sandbox.port-in-use",
        message: expect.stringContaining(String(hostPort)),
      });
      taken.close();
      for (const [port, options] of [
        [0, {}],
        [65_536, {}],
        [1.5, {}],
        [80, { hostPort: -1 }],
      ] as const)
        await expect(sandbox.forward(port, options)).rejects.toMatchObject({ code: "usage.invalid" });
    },
  );

  sandboxTest("ends with its sandbox", async ({ open }) => {
    const sandbox = await open();
    await serve(sandbox, http, "3007");
    const port = await sandbox.forward(3007);
    const client = connect(port.port);
    client.write("GET / HTTP/1.1\r\n");
    await once(client, "connect");
    client.on("error", () => undefined);
    const closed = new Promise((resolve) => client.once("close", resolve));
    await sandbox.close();
    await closed;
    await expect(fetch(port.url)).rejects.toThrow();
    await expect(sandbox.forward(3007)).rejects.toMatchObject({ code: "sandbox.gone" });
  });
});

const sha256 = (data: Buffer) => createHash("sha256").update(data).digest("hex");
