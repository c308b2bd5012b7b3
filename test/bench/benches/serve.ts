import { setTimeout as sleep } from "node:timers/promises";
import { BrigClient } from "brigbox";
import { type Bench, type BenchContext, quantity } from "../bench.js";
import { EpisodeProcess } from "../episode-process.js";
import type { EpisodeTimes } from "../episodes-process.js";
import { type Service, startService } from "../service-process.js";
import { quantileOf } from "../statistics.js";

/** A side runs so many episodes before it is the other one's turn. */
const EPISODES_A_TURN = 20;

/**
 * What a call costs over `brig serve`, above the same call of the library. An episode is a sandbox from a pool of two, three
 * commands and its end. The client and the library are each in a process that does nothing else, and take turns; a turn begins
 * when the pool of the other one is full again, so that each side has its own starts beside it, and only those. Episodes that
 * follow each other wait for the engine, which starts containers less quickly than they end; a warm sandbox is measured with the
 * pool full.
 */
export const serve: Bench = {
  name: "serve",
  async run(context) {
    const { isQuick, runtime, progress, signal } = context;
    const episodes = isQuick ? 20 : 1000;
    await using service = await startService(["--warm", "2"], context);
    await using client = await EpisodeProcess.start({ kind: "service", ...service.address }, signal);
    await using library = await EpisodeProcess.start({ kind: "library", runtime }, signal);
    const ours: EpisodeTimes = { starts: [], commands: [] };
    const without: EpisodeTimes = { starts: [], commands: [] };
    const runTurn = async (side: EpisodeProcess, times: EpisodeTimes, count: number) => {
      const { starts, commands } = await side.run(count);
      times.starts.push(...starts);
      times.commands.push(...commands);
    };
    for (let done = 0; done < episodes; done += EPISODES_A_TURN) {
      progress(`brig serve, episode ${done + 1} of ${episodes}`);
      const turn = Math.min(EPISODES_A_TURN, episodes - done);
      const isOursFirst = (done / EPISODES_A_TURN) % 2 === 0;
      if (isOursFirst) await runTurn(client, ours, turn);
      await runTurn(library, without, turn);
      if (!isOursFirst) await runTurn(client, ours, turn);
    }
    const rounds = isQuick ? 10 : 100;
    const warm = await warmStarts(service, { rounds, signal, progress });
    const unit = "ms";
    const atMost = (value: number) => ({ kind: "at-most", value }) as const;
    const above = (fraction: number) => [
      quantileOf(ours.commands, fraction) - quantileOf(without.commands, fraction),
    ];
    const started = { name: "BrigClient", values: warm };
    return [
      quantity({ name: "BrigClient", values: ours.commands }, { title: "a command over brig serve", unit }),
      quantity({ name: "sandbox.exec", values: without.commands }, { title: "… and without it", unit }),
      quantity(
        { name: "difference", values: above(0.5) },
        { title: "… the median over the library's", unit, target: atMost(1.5) },
      ),
      quantity(
        { name: "difference", values: above(0.95) },
        { title: "… the 95th percentile over the library's", unit, target: atMost(3) },
      ),
      quantity(started, { title: "a warm sandbox over brig serve", unit, target: atMost(10) }),
      quantity(started, { title: "… the 95th percentile", unit, judged: "p95", target: atMost(25) }),
      quantity(
        { name: "BrigClient", values: ours.starts },
        { title: "a sandbox of episodes that follow each other, over brig serve", unit },
      ),
      quantity({ name: "pool.acquire", values: without.starts }, { title: "… and without it", unit }),
    ];
  },
};

/** The milliseconds of each create, with the pool of the service full. */
async function warmStarts(
  { address }: Service,
  { rounds, signal, progress }: { rounds: number } & Pick<BenchContext, "signal" | "progress">,
): Promise<number[]> {
  const client = new BrigClient(address);
  const headers = { authorization: `Bearer ${address.token}` };
  const isFull = async () => {
    const answer = await fetch(`${address.url}/metrics`, { headers, signal });
    return /^brig_warm_sandboxes 2$/m.test(await answer.text());
  };
  const times: number[] = [];
  try {
    for (let round = 1; round <= rounds; round++) {
      progress(`a warm sandbox, round ${round} of ${rounds}`);
      while (!(await isFull())) await sleep(20);
      const startedAt = performance.now();
      const sandbox = await client.createSandbox();
      times.push(performance.now() - startedAt);
      await sandbox.close();
    }
  } finally {
    client.close();
  }
  return times;
}
