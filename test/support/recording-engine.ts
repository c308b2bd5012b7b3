import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { socketOf, testEngine } from "./engine.js";

/** The engine of this machine behind a socket that keeps what it is asked. */
export interface RecordingEngine extends AsyncDisposable {
  /** As `DOCKER_HOST` spells it. */
  readonly endpoint: string;
  /** The JSON bodies of the requests to this path, in order. */
  bodiesOf(path: string): unknown[];
}

export async function recordingEngine(): Promise<RecordingEngine> {
  const directory = await mkdtemp(join(tmpdir(), "brig-recording-"));
  const socketPath = join(directory, "docker.sock");
  const behind = socketOf(await testEngine());
  const sockets: Socket[] = [];
  const sent: { pieces: Buffer[] }[] = [];
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: behind, allowHalfOpen: true });
    const record = { pieces: [] as Buffer[] };
    sent.push(record);
    near.on("data", (piece: Buffer) => record.pieces.push(piece));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.push(from);
      from.on("error", () => to.destroy());
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    endpoint: `unix://${socketPath}`,
    bodiesOf: (path) => sent.flatMap(({ pieces }) => bodiesIn(Buffer.concat(pieces), path)),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Requests with a Content-Length, one after the other on a connection. */
function bodiesIn(bytes: Buffer, path: string): unknown[] {
  const bodies: unknown[] = [];
  for (let at = 0; ; ) {
    const end = bytes.indexOf("\r\n\r\n", at);
    if (end === -1) return bodies;
    const head = bytes.subarray(at, end).toString("latin1");
    const length = Number(/^content-length: *([0-9]+)/im.exec(head)?.[1] ?? 0);
    const [, asked = ""] = head.split(" ", 2);
    const body = bytes.subarray(end + 4, end + 4 + length);
    if (asked.replace(/^\/v[0-9.]+/, "").split("?", 1)[0] === path) bodies.push(JSON.parse(body.toString()));
    at = end + 4 + length;
  }
}
