import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { type Bench, type BenchContext, quantity } from "../bench.js";
import { EpisodeProcess } from "../episode-process.js";
import { quantileOf } from "../statistics.js";

/** A side runs so many episodes before it is the other one's turn. */
const EPISODES_A_TURN = 20;

/**
 * What a call costs over `brig serve`, above the same call of the library. An episode is a sandbox from a pool of two, three
 * commands and its end. The client and the library are each in a process that does nothing else, and take turns; a turn begins
 * when the pool of the other one is full again, so that each side has its own starts beside it, and only those.
 */
export const serve: Bench = {
  name: "serve",
  async run(context) {
    const { isQuick, runtime, progress, signal } = context;
    const episodes = isQuick ? 20 : 1000;
    await using service = await startService(context);
    await using client = await EpisodeProcess.start({ kind: "service", ...service.address }, signal);
    await using library = await EpisodeProcess.start({ kind: "library", runtime }, signal);
    const times = { ours: [] as number[], library: [] as number[] };
    for (let done = 0; done < episodes; done += EPISODES_A_TURN) {
      progress(`brig serve, episode ${done + 1} of ${episodes}`);
      const turn = Math.min(EPISODES_A_TURN, episodes - done);
      const isOursFirst = (done / EPISODES_A_TURN) % 2 === 0;
      if (isOursFirst) times.ours.push(...(await client.run(turn)));
      times.library.push(...(await library.run(turn)));
      if (!isOursFirst) times.ours.push(...(await client.run(turn)));
    }
    const p95 = (values: readonly number[]) => quantileOf(values, 0.95);
    const unit = "ms";
    return [
      quantity({ name: "BrigClient", values: times.ours }, { title: "a command over brig serve", unit }),
      quantity({ name: "sandbox.exec", values: times.library }, { title: "… and without it", unit }),
      quantity(
        { name: "difference", values: [p95(times.ours) - p95(times.library)] },
        { title: "… the 95th percentile over the library's", unit, target: { kind: "at-most", value: 3 } },
      ),
    ];
  },
};

interface Service extends AsyncDisposable {
  address: { url: string; token: string };
}

async function startService({ runtime, signal }: BenchContext): Promise<Service> {
  const brig = fileURLToPath(new URL("./cli/main.js", import.meta.resolve("brigbox")));
  const args = [brig, "serve", "--listen", "127.0.0.1:0", "--warm", "2"];
  if (runtime !== undefined) args.push("--runtime", runtime);
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  const values: string[] = [];
  // The first line has the address, the second one the token.
  for await (const line of createInterface({ input: child.stdout, signal })) {
    values.push(/"(.*)"/.exec(line)?.[1] ?? "");
    if (values.length === 2) break;
  }
  const [url = "", token = ""] = values;
  return {
    address: { url, token },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await exited;
    },
  };
}
