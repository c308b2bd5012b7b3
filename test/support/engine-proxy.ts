import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEnvironment } from "../../src/lib/env.js";
import { connectEngine } from "../../src/sandbox/docker/connect.js";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { testEngine } from "./engine.js";

/** The engine of this machine behind a socket whose streams can be made to fall silent. */
export interface SilencedEngine extends AsyncDisposable {
  readonly engine: Engine;
  /** As `DOCKER_HOST` spells it. */
  readonly endpoint: string;
  /** Streams that have been opened so far: every exec is one. */
  readonly streams: number;
  /** While it is true, the engine takes no connection. */
  refuses: boolean;
  /** From now on nothing passes on the streams there are, in either direction, and none of them is closed. */
  silence(): void;
  /** Closes the streams there are. */
  breakStreams(): void;
}

interface Passage {
  isStream: boolean;
  sides: [Socket, Socket];
}

export async function silencedEngine(): Promise<SilencedEngine> {
  const directory = await mkdtemp(join(tmpdir(), "brig-proxy-"));
  const socketPath = join(directory, "docker.sock");
  const behind = new URL((await testEngine()).endpoint).pathname;
  const passages: Passage[] = [];
  const state = { refuses: false };
  const server = createServer({ allowHalfOpen: true }, (near) => {
    if (state.refuses) return void near.on("error", () => undefined).destroy();
    const far = connect({ path: behind, allowHalfOpen: true });
    const passage: Passage = { isStream: false, sides: [near, far] };
    passages.push(passage);
    far.once("data", (head: Buffer) => {
      passage.isStream = head.subarray(0, 64).toString("latin1").includes(" 101 ");
    });
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on("error", () => to.destroy());
      from.pipe(to);
    }
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  const endpoint = `unix://${socketPath}`;
  return {
    engine: await connectEngine({ env: readEnvironment(), endpoint }),
    endpoint,
    get refuses() {
      return state.refuses;
    },
    set refuses(isRefusing) {
      state.refuses = isRefusing;
    },
    get streams() {
      return passages.filter(({ isStream }) => isStream).length;
    },
    silence() {
      for (const { isStream, sides } of passages)
        if (isStream)
          for (const side of sides) {
            side.unpipe();
            side.pause();
          }
    },
    breakStreams() {
      for (const { isStream, sides } of passages) if (isStream) for (const side of sides) side.destroy();
    },
    async [Symbol.asyncDispose]() {
      for (const { sides } of passages) for (const side of sides) side.destroy();
      await new Promise((resolve) => server.close(resolve));
      await rm(directory, { recursive: true, force: true });
    },
  };
}
