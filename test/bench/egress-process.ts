import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Sandbox } from "brigbox";
import {
  authorityCertificate,
  keyToPem,
  newKeyPair,
  serverCertificate,
} from "../../src/lib/tls/certificate.js";
import { ownFolder } from "./own-folder.js";

export interface EgressOrder {
  requests: number;
  bulkRounds: number;
  connectionRounds: number;
}

export interface EgressMeasures {
  /** Milliseconds of each request for one byte. */
  inside: number[];
  tunnel: number[];
  http: number[];
  newTunnel: number[];
  /** In TLS that ends at the proxy, and begins there anew: on one connection of the program, and on a new one for each. */
  tls: number[];
  newTls: number[];
  /** MB/s of each transfer of 64 MB. */
  bulk: { inside: number[]; tunnel: number[]; http: number[] };
  /** Milliseconds until all connections were open and had answered, and MB that this process had grown by, in each round. */
  connections: { openMs: number; grownMb: number }[];
}

interface Message {
  order: EgressOrder;
  workspace: string;
  runtime: string | undefined;
}

const BULK_BYTES = 64 * 1024 * 1024;
const CONNECTIONS = 1000;

/** Answers `GET /N` with N bytes, on one connection as often as it is asked. Prints its port. */
const server = `
const zeros = Buffer.alloc(1 << 20);
const tls = process.env.TLS_SERVER === undefined ? null : JSON.parse(process.env.TLS_SERVER);
const server = require(tls === null ? "node:http" : "node:https").createServer(tls ?? {}, (request, response) => {
  let left = Number(request.url.slice(1));
  response.writeHead(200, { "content-length": left });
  const more = () => {
    while (left > 0) {
      const piece = zeros.subarray(0, Math.min(left, zeros.length));
      left -= piece.length;
      if (!response.write(piece)) return response.once("drain", more);
    }
    response.end();
  };
  more();
});
server.keepAliveTimeout = 0;
server.listen(Number(process.argv[1]), "127.0.0.1", 4096, () => console.log(server.address().port));`;

/**
 * Measures requests: HOW PORT COUNT BYTES. Each prints the milliseconds that it took. "connections" opens COUNT tunnels,
 * asks in each of them, and keeps them all open until a line comes on standard input.
 */
const client = `
import socket, ssl, sys, time
how, port, count, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
trusted = ssl.create_default_context()
name = "127.0.0.1" if how == "inside" else "host.internal"
proxy = ("127.83.0.1", 3128)
url = f"http://{name}:{port}" if how == "http" else ""
buffer = bytearray(1 << 20)
def dial(at):
    s = socket.create_connection(at)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def head(s):
    data = b""
    while b"\\r\\n\\r\\n" not in data: data += s.recv(65536)
    return data.split(b"\\r\\n\\r\\n", 1)[1]
def tunnel():
    s = dial(proxy)
    s.sendall(f"CONNECT {name}:{port} HTTP/1.1\\r\\nHost: {name}:{port}\\r\\n\\r\\n".encode())
    head(s)
    return trusted.wrap_socket(s, server_hostname=name) if how.endswith("tls") else s
def ask(s):
    s.sendall(f"GET {url}/{length} HTTP/1.1\\r\\nHost: {name}:{port}\\r\\n\\r\\n".encode())
    left = length - len(head(s))
    while left > 0: left -= s.recv_into(buffer)
def opened():
    return dial(("127.0.0.1", port)) if how == "inside" else dial(proxy) if how == "http" else tunnel()
if how == "connections":
    begun = time.perf_counter()
    all = [tunnel() for _ in range(count)]
    for s in all: ask(s)
    print((time.perf_counter() - begun) * 1000, flush=True)
    sys.stdin.readline()
else:
    s = None
    for _ in range(count):
        if not how.startswith("new"): s = s or opened()
        begun = time.perf_counter()
        if how.startswith("new"): s = opened()
        ask(s)
        print((time.perf_counter() - begun) * 1000)`;

const [message] = (await once(process, "message")) as [Message];
process.send?.(await measure(message));
process.disconnect();

async function measure({ order, workspace, runtime }: Message): Promise<EgressMeasures> {
  const { requests, bulkRounds, connectionRounds } = order;
  await using folder = await ownFolder();
  const company = await companyServer();
  const authority = join(folder.path, "authority.pem");
  await writeFile(authority, company.authority);
  const outside = startServer();
  const outsideTls = startServer({ TLS_SERVER: JSON.stringify(company.server) });
  try {
    const port = await outside.port;
    const tlsPort = await outsideTls.port;
    await using sandbox = await Sandbox.create({
      ...{ workspace, runtime, network: `allowlist:host.internal:${port},host.internal:${tlsPort}` },
      egress: { rules: [{ host: `host.internal:${tlsPort}`, methods: ["GET"] }], ca_files: [authority] },
    });
    const within = await sandbox.spawn(["node", "-e", server, "3000"], { stdin: "closed" });
    await once(within.stdout, "data");
    const take = async (how: string, { count, bytes }: { count: number; bytes: number }) => {
      const at = how === "inside" ? 3000 : how.endsWith("tls") ? tlsPort : port;
      const argv = ["python3", "-c", client, how, String(at), String(count), String(bytes)];
      const { stdout, stderr } = await sandbox.exec(argv);
      if (stderr !== "") throw new Error(`the client failed: ${stderr}`);
      return stdout.trim().split("\n").map(Number);
    };
    const short = async (how: string, count = requests) => {
      const warmUp = 100;
      return (await take(how, { count: count + warmUp, bytes: 1 })).slice(warmUp);
    };
    const bulk = async (how: string) => {
      const taken = await take(how, { count: bulkRounds + 1, bytes: BULK_BYTES });
      return taken.slice(1).map((ms) => BULK_BYTES / 1000 / ms);
    };
    const [inside, tunnel, http] = [await short("inside"), await short("tunnel"), await short("http")];
    const [tls, newTls] = [await short("tls"), await short("new-tls", Math.ceil(requests / 4))];
    const newTunnel = await short("new");
    const transfers = {
      inside: await bulk("inside"),
      tunnel: await bulk("tunnel"),
      http: await bulk("http"),
    };
    const connections: EgressMeasures["connections"] = [];
    const before = process.memoryUsage.rss();
    for (let round = 0; round < connectionRounds; round += 1) {
      const argv = ["python3", "-c", client, "connections", String(port), String(CONNECTIONS), "1"];
      const running = await sandbox.spawn(argv);
      const [opened] = await once(running.stdout, "data");
      connections.push({
        openMs: Number(String(opened)),
        grownMb: (process.memoryUsage.rss() - before) / 1e6,
      });
      running.stdin?.end("\n");
      await running.exit;
    }
    return { inside, tunnel, http, tls, newTls, newTunnel, bulk: transfers, connections };
  } finally {
    outside.stop();
    outsideTls.stop();
  }
}

function startServer(variables: Record<string, string> = {}) {
  const started = spawn(process.execPath, ["-e", server, "0"], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...variables },
  });
  const port = once(started.stdout, "data").then(([line]) => Number(String(line)));
  return { port, stop: () => void started.kill() };
}

/** What a server of HTTPS for host.internal is started with, and the authority that its certificate is from. */
async function companyServer() {
  const [signer, keys] = await Promise.all([newKeyPair(), newKeyPair()]);
  const issuer = "an authority of a measurement";
  const cert = await serverCertificate("host.internal", { issuer, signer, keys });
  return {
    server: { cert, key: await keyToPem(keys) },
    authority: await authorityCertificate(issuer, signer),
  };
}
