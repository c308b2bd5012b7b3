import { once } from "node:events";
import { createServer, type IncomingMessage, request as openRequest } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";

/** What the proxy was asked for: `CONNECT a.example:443`, `GET http://a.example/x`. */
interface Asked {
  line: string;
  authorization: string | undefined;
}

/**
 * A proxy as companies have one: it looks up names itself, here all to 127.0.0.1, wants a password, and makes tunnels
 * to the ports only that it is told.
 */
export async function companyProxy({ tunnelPorts }: { tunnelPorts: readonly number[] }) {
  const asked: Asked[] = [];
  const sockets = new Set<Socket>();
  const isKnown = (request: IncomingMessage) => {
    const authorization = request.headers["proxy-authorization"];
    asked.push({ line: `${request.method} ${request.url}`, authorization });
    return authorization === `Basic ${Buffer.from("user:p@ss").toString("base64")}`;
  };
  const server = createServer((request, response) => {
    if (!isKnown(request)) {
      response.writeHead(407, { "proxy-authenticate": 'Basic realm="company"' }).end("who are you?");
      return;
    }
    const { port, pathname, search } = new URL(request.url ?? "");
    const { "proxy-authorization": _, ...headers } = request.headers;
    const path = `${pathname}${search}`;
    const outgoing = openRequest(
      { host: "127.0.0.1", port, path, method: request.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      },
    );
    outgoing.once("error", () => response.writeHead(502).end());
    response.once("close", () => outgoing.destroy());
    request.pipe(outgoing);
  });
  server.on("connect", (request: IncomingMessage, stream: Socket, head: Buffer) => {
    stream.on("error", () => undefined);
    const port = Number(/:(\d+)$/.exec(request.url ?? "")?.[1]);
    if (!isKnown(request)) {
      stream.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
      return;
    }
    if (!tunnelPorts.includes(port)) {
      stream.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
      return;
    }
    const outside = connect(port, "127.0.0.1", () => {
      stream.write("HTTP/1.1 200 OK\r\nVia: 1.1 company\r\n\r\n");
      if (head.length > 0) outside.write(head);
      stream.pipe(outside).pipe(stream);
    });
    outside.on("error", () => stream.destroy());
    sockets.add(outside);
  });
  server.on("connection", (socket) => sockets.add(socket));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    asked,
    url: `http://user:p%40ss@127.0.0.1:${port}`,
    urlWithoutPassword: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
