import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Sandbox } from "brigbox";
import { type Bench, type BenchContext, compare, quantity } from "../bench.js";
import { outputOf } from "../rivals.js";
import { timed } from "../sampling.js";

/** Many sandboxes of one process, started at once and closed at once, against as many plain containers. */
export const manySandboxes: Bench = {
  name: "many-sandboxes",
  async run(context) {
    const { isQuick, progress, signal } = context;
    const count = isQuick ? 16 : 64;
    const rounds = isQuick ? 1 : 3;
    const ours = { start: [] as number[][], close: [] as number[][] };
    const plain = { start: [] as number[][], close: [] as number[][] };
    const stalls: number[] = [];
    const firsts: number[] = [];
    await using first = await context.openSandbox();
    for (let round = 0; round < rounds; round++) {
      signal.throwIfAborted();
      progress(`${count} at once, round ${round + 1} of ${rounds}`);
      const containers = await plainContainers(first, count, context);
      plain.start.push([containers.startMs]);
      plain.close.push([containers.closeMs]);
      const sandboxes = await ownSandboxes(first.engine, count, context);
      ours.start.push([sandboxes.startMs]);
      ours.close.push([sandboxes.closeMs]);
      firsts.push(sandboxes.firstMs);
      stalls.push(sandboxes.stallMs);
    }
    const unit = "ms";
    const direction = "ours / rival";
    return [
      compare(
        { name: "Sandbox.create", rounds: ours.start },
        { name: "docker run -d", rounds: plain.start },
        { title: `${count} started at once`, unit, direction, target: { kind: "at-most", value: 1.2 } },
      ),
      compare(
        { name: "sandbox.close", rounds: ours.close },
        { name: "docker rm -f", rounds: plain.close },
        { title: `${count} closed at once`, unit, direction, target: { kind: "at-most", value: 1.5 } },
      ),
      quantity(
        { name: "this process", values: stalls },
        {
          title: `longest pause of the event loop, ${count} sandboxes`,
          unit,
          judged: "max",
          target: { kind: "at-most", value: 100 },
        },
      ),
      quantity({ name: "Sandbox.create", values: firsts }, { title: `the first of ${count} is there`, unit }),
    ];
  },
};

async function ownSandboxes(engine: Sandbox["engine"], count: number, context: BenchContext) {
  const workspaces = Array.from({ length: count }, () => join(context.workspace, randomUUID()));
  await Promise.all(workspaces.map((workspace) => mkdir(workspace)));
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const startedAt = performance.now();
  let firstMs = 0;
  const sandboxes: Sandbox[] = [];
  const startMs = await timed(() =>
    Promise.all(
      workspaces.map(async (workspace) => {
        sandboxes.push(await context.openSandbox({ engine, workspace }));
        firstMs ||= performance.now() - startedAt;
      }),
    ),
  );
  const closeMs = await timed(() => Promise.all(sandboxes.map((sandbox) => sandbox.close())));
  delay.disable();
  return { startMs, closeMs, firstMs, stallMs: delay.max / 1e6 };
}

/** By the docker program, all at once, as a shell's `&` would. */
async function plainContainers({ engine, image }: Sandbox, count: number, { runtime }: BenchContext) {
  const docker = ["--host", engine.endpoint];
  const names = Array.from({ length: count }, () => `brig-bench-${randomUUID()}`);
  const chosen = runtime === undefined ? [] : ["--runtime", runtime];
  const options = ["-d", "--rm", "--network", "none", "--label", "brig.bench", ...chosen];
  try {
    const startMs = await timed(() =>
      Promise.all(
        names.map((name) =>
          outputOf("docker", [...docker, "run", ...options, "--name", name, image, "sleep", "600"]),
        ),
      ),
    );
    const closeMs = await timed(() => outputOf("docker", [...docker, "rm", "--force", ...names]));
    return { startMs, closeMs };
  } catch (error) {
    await outputOf("docker", [...docker, "rm", "--force", ...names]);
    throw error;
  }
}
