import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Transform } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { readEnvironment } from "../../src/lib/env.js";
import { encodeFrame } from "../../src/sandbox/channel/frames.js";
import { FrameType } from "../../src/sandbox/channel/protocol.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { socketOf, testEngine } from "./engine.js";

/**
 * What becomes of one request: the engine's answer, at once or drop by drop; a refusal that the engine knows nothing of, as a fault of its
 * own or of the request; a connection that breaks before the engine heard of it, once it has done what it was asked, or in the middle of
 * the answer; or silence, the engine having heard of it or not.
 */
export type Fate =
  | "passes"
  | "slow"
  | "refused"
  | "conflict"
  | "cut"
  | "answer-lost"
  | "truncated"
  | "hangs"
  | "answer-held";

/** An engine behind a socket that is unreliable as a test decides. */
export interface FaultyEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** As `DOCKER_HOST` spells it. */
  readonly endpoint: string;
  /** Method and path of every request so far, without version and query, in Docker's form as well where brig uses Podman's own. */
  readonly requests: readonly string[];
  /** Streams to and from containers that brig has not closed. */
  readonly openStreams: number;
  /** Decides of every request from now on. */
  decide(fate: (request: string) => Fate): void;
  /** From now on no runner hears that it shall end. */
  withholdEnd(): void;
}

const busy = '{"message":"the engine has a bad day"}';

function refusal(status: string): string {
  return `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${busy.length}\r\nConnection: close\r\n\r\n${busy}`;
}

/** Default: the engine of this machine. */
export async function faultyEngine(engine?: Engine): Promise<FaultyEngine> {
  const directory = await mkdtemp(join(tmpdir(), "brig-faulty-"));
  const socketPath = join(directory, "docker.sock");
  const behind = socketOf(engine ?? (await testEngine()));
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  const streams = new Set<Socket>();
  let decide: (request: string) => Fate = () => "passes";
  let withholds = false;

  const server = createServer({ allowHalfOpen: true }, (near) => {
    sockets.add(near.on("error", () => undefined));
    near.once("data", (head: Buffer) => {
      const request = requestOf(head);
      requests.push(request);
      if (/^POST .*\/(?:attach|exec\/[^/]+\/start)$/.test(request)) {
        streams.add(near);
        for (const event of ["end", "close"]) near.on(event, () => streams.delete(near));
      }
      const fate = decide(request);
      if (fate === "refused") near.end(refusal("500 Internal Server Error"));
      if (fate === "conflict") near.end(refusal("409 Conflict"));
      if (fate === "cut") near.destroy();
      if (["refused", "conflict", "cut", "hangs"].includes(fate)) return;
      const far = connect({ path: behind, allowHalfOpen: true });
      sockets.add(far.on("error", () => near.destroy()));
      near.on("error", () => far.destroy());
      far.write(head);
      near.on("data", (data: Buffer) => {
        const passed = withholds ? withoutEnd(data) : data;
        if (passed.length > 0 && !far.write(passed)) near.pause();
      });
      near.on("end", () => far.end());
      far.on("drain", () => near.resume());
      if (fate === "passes") far.pipe(near);
      else if (fate === "slow") far.pipe(drops()).pipe(near);
      else
        far.once("data", (answer: Buffer) => {
          if (fate === "truncated") near.end(answer.subarray(0, answer.length - answer.length / 3));
          if (fate === "answer-lost") near.destroy();
        });
    });
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const endpoint = `unix://${socketPath}`;
  return {
    engine: await connectEngine({ env: readEnvironment(), endpoint }),
    endpoint,
    requests,
    get openStreams() {
      return streams.size;
    },
    decide(next) {
      decide = next;
    },
    withholdEnd() {
      withholds = true;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Passes everything on, the first kilobyte in a few pieces with pauses between them. */
function drops(): Transform {
  let passed = 0;
  return new Transform({
    async transform(chunk: Buffer, _, done) {
      let rest = chunk;
      while (passed < 1024 && rest.length > 0) {
        await pause(50);
        this.push(rest.subarray(0, 64));
        rest = rest.subarray(64);
        passed += 64;
      }
      if (rest.length > 0) this.push(rest);
      done();
    },
  });
}

/** It is the last that a host says. */
function withoutEnd(data: Buffer): Buffer {
  const end = encodeFrame(FrameType.end, 0, Buffer.alloc(0));
  return data.subarray(-end.length).equals(end) ? data.subarray(0, -end.length) : data;
}

/** Decides so of the first request that matches, and lets all others pass. */
export function once(pattern: RegExp, fate: Fate): (request: string) => Fate {
  let isOver = false;
  return (request) => {
    if (isOver || !pattern.test(request)) return "passes";
    isOver = true;
    return fate;
  };
}

export function always(pattern: RegExp, fate: Fate): (request: string) => Fate {
  return (request) => (pattern.test(request) ? fate : "passes");
}

function requestOf(head: Buffer): string {
  const [, method, path] =
    /^(\S+) (?:\/v[\d.]+)?(?:\/libpod)?([^ ?]*)/.exec(head.toString("latin1", 0, 1000)) ?? [];
  return `${method} ${path}`;
}
