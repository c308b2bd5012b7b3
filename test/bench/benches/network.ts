import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Sandbox } from "brigbox";
import { type Bench, compare, quantity, type Samples } from "../bench.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const PORT = 3000;
const BULK_BYTES = 64 * 1024 * 1024;

/** Answers each line, a number, with so many bytes. */
const server = `
import socketserver
class Answer(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    def handle(self):
        for line in self.rfile:
            left = int(line)
            while left > 0:
                left -= self.request.send(bytes(min(left, 1 << 20)))
class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
server = Server(("127.0.0.1", ${PORT}), Answer)
print("ready", flush=True)
server.serve_forever()`;

/** Makes such requests one after the other, and prints the milliseconds of each. */
const client = `
import socket, sys, time
s = socket.create_connection(("127.0.0.1", ${PORT}))
s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
count, length = int(sys.argv[1]), int(sys.argv[2])
buffer = bytearray(1 << 20)
for _ in range(count):
    begun, left = time.perf_counter(), length
    s.sendall(b"%d\\n" % length)
    while left > 0: left -= s.recv_into(buffer)
    print((time.perf_counter() - begun) * 1000)`;

/** A server in the sandbox, reached through a forwarded port and from inside. */
export const network: Bench = {
  name: "network",
  async run({ isQuick, openSandbox, progress, signal }) {
    await using sandbox = await openSandbox();
    const served = await sandbox.spawn(["python3", "-c", server], { stdin: "closed" });
    await once(served.stdout, "data");
    await using port = await sandbox.forward(PORT);
    const socket = connect(port.port, "127.0.0.1").setNoDelay();
    await once(socket, "connect");
    const ask = (bytes: number) => request(socket, bytes);
    await repeat(50, () => ask(1));
    const directly = await inside(sandbox, { count: isQuick ? 200 : 1000, bytes: 1 });
    const requests: number[] = [];
    progress("requests of one byte through a forwarded port");
    while (requests.length < (isQuick ? 200 : 1000)) requests.push(await timed(() => ask(1)));
    const bulk = await takeTurns(
      {
        ours: {
          name: "sandbox.forward",
          batch: 1,
          sample: async () => throughput(await timed(() => ask(BULK_BYTES))),
        },
        inside: {
          name: "loopback in the sandbox",
          batch: 1,
          sample: async () =>
            throughput((await inside(sandbox, { count: 1, bytes: BULK_BYTES }))[0] ?? Number.NaN),
        },
      },
      {
        rounds: isQuick ? 3 : 12,
        signal,
        onRound: (round) => progress(`64 MB through a port, round ${round}`),
      },
    );
    socket.destroy();
    const direct = median(directly);
    return [
      quantity(
        { name: "sandbox.forward", values: requests.map((ms) => ms - direct) },
        {
          title: "a request through a port, over one inside",
          unit: "ms",
          judged: "median",
          target: { kind: "at-most", value: 1 },
        },
      ),
      quantity(
        { name: "sandbox.forward", values: valuesOf(bulk.ours) },
        {
          title: "64 MB through a port",
          unit: "MB/s",
          judged: "median",
          target: { kind: "at-least", value: 200 },
        },
      ),
      compare(bulk.ours, bulk.inside, {
        title: "… against loopback",
        unit: "MB/s",
        direction: "ours / rival",
      }),
    ];
  },
};

const throughput = (ms: number) => BULK_BYTES / 1000 / ms;

const valuesOf = ({ rounds }: Samples) => rounds.flat();

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

async function request(socket: Socket, bytes: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    let left = bytes;
    const take = (data: Buffer) => {
      left -= data.length;
      if (left > 0) return;
      socket.off("data", take).off("error", reject);
      resolve();
    };
    socket.on("data", take).once("error", reject);
    socket.write(`${bytes}\n`);
  });
}

async function inside(
  sandbox: Sandbox,
  { count, bytes }: { count: number; bytes: number },
): Promise<number[]> {
  const { stdout } = await sandbox.exec(["python3", "-c", client, String(count), String(bytes)]);
  return stdout.trim().split("\n").map(Number);
}
