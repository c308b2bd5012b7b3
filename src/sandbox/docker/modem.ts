import http, { type IncomingMessage } from "node:http";
import type { Duplex, Readable } from "node:stream";
import type { Endpoint } from "./endpoint.js";
import { SharedBufferAgent } from "./shared-buffer-agent.js";

/** Sends requests to one engine, in the words of dockerode's modem. */
export interface Modem {
  /** E.g. `unix:///var/run/docker.sock`. */
  readonly address: string;
  dial(request: DialledRequest, callback: Answered): void;
}

interface DialledRequest {
  method: string;
  /** With its query. */
  path: string;
  options: { _query: object; _body: object };
  file: Readable | undefined;
  /** Whether the connection is to carry raw bytes after the answer. */
  hijack: boolean;
  isStream: true;
  statusCodes: Readonly<Record<number, true>>;
  abortSignal: AbortSignal;
}

/** Called with the beginning of the answer, or with the raw connection if the engine agreed to it. */
type Answered = (error: Error | null, answer: IncomingMessage | Duplex) => void;

/**
 * brig's own modem. dockerode's would take 40 ms to load and 2 ms for each request, trusts every host key over ssh, and goes wherever
 * an answer redirects it. Connections are not reused except over ssh, so a restarted engine never shows as a reset connection.
 */
export async function openModem(endpoint: Endpoint): Promise<Modem> {
  const { where, agent, send } = await waysTo(endpoint);
  return {
    address: endpoint.address,
    dial({ method, path, options, file, hijack, abortSignal }, callback) {
      const json = JSON.stringify(options._body);
      const hasJson = method === "POST" && json !== "{}";
      const type = file ? "application/tar" : "application/json";
      const request = send({
        ...where,
        agent,
        method,
        path,
        signal: abortSignal,
        headers: {
          ...(file || hasJson ? { "content-type": type } : {}),
          ...(hijack ? { connection: "Upgrade", upgrade: "tcp" } : {}),
        },
      });
      request.once("response", (answer) => callback(null, answer));
      if (hijack)
        request.once("upgrade", (_, socket, head) => {
          socket.unshift(head);
          callback(null, socket);
        });
      // After the answer has begun, errors belong to its body.
      request.on("error", callback);
      if (file) file.on("error", (error) => request.destroy(error)).pipe(request);
      else request.end(hasJson ? json : undefined);
    },
  };
}

async function waysTo(endpoint: Endpoint) {
  // There is no name to verify if TLS is not used, and Node would take milliseconds to look for one.
  const plain = { servername: "" };
  if (endpoint.kind === "unix")
    return {
      where: { socketPath: endpoint.socketPath, ...plain },
      agent: new SharedBufferAgent(),
      send: http.request,
    };
  // Loaded on demand, like what follows: it is slow, and most engines are reached by a socket.
  if (endpoint.kind === "ssh") {
    const { SshAgent } = await import("./ssh-agent.js");
    return { where: { host: "docker", ...plain }, agent: new SshAgent(endpoint), send: http.request };
  }
  const { host, port, tls } = endpoint;
  if (tls === null)
    return { where: { host, port, ...plain }, agent: new SharedBufferAgent(), send: http.request };
  const https = process.getBuiltinModule("node:https");
  return { where: { host, port, ...tls }, agent: new https.Agent(), send: https.request };
}
