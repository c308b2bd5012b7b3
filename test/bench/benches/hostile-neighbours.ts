import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Sandbox } from "brigbox";
import { beginHostility, HOSTILE, HOSTILE_LIMITS, type Hostility } from "../../support/neighbours.js";
import { type Bench, compare } from "../bench.js";
import { ownFolder } from "../own-folder.js";
import { repeat, timed } from "../sampling.js";

const VICTIMS = 4;

/** What `true` costs four sandboxes beside five that do what they can to the machine, against the same four alone. */
export const hostileNeighbours: Bench = {
  name: "hostile-neighbours",
  async run(context) {
    const { isQuick, progress, signal } = context;
    const rounds = isQuick ? 2 : 8;
    const calls = isQuick ? 10 : 50;
    await using victims = await several(VICTIMS, () => context.openSandbox());
    const names = Object.keys(HOSTILE) as Hostility[];
    await using folder = await ownFolder();
    const policyFile = await smallPolicy(folder.path);
    await using hostile = await several(names.length, () => context.openSandbox({ policyFile }));
    const sample = async () => {
      signal.throwIfAborted();
      const each = await Promise.all(victims.all.map((victim) => latencies(victim, calls)));
      return each.flat();
    };
    await sample();
    const alone: number[][] = [];
    const beside: number[][] = [];
    for (let round = 0; round < rounds; round++) {
      progress(`hostile neighbours, round ${round + 1} of ${rounds}`);
      alone.push(await sample());
      const ends = await Promise.all(
        hostile.all.map((sandbox, index) => beginHostility(sandbox, names[index] as Hostility)),
      );
      beside.push(await sample());
      for (const end of ends) await end();
    }
    return [
      compare(
        { name: "beside five", rounds: beside },
        { name: "alone", rounds: alone },
        {
          title: `\`true\` in ${VICTIMS} sandboxes beside hostile ones`,
          unit: "ms",
          direction: "ours / rival",
          judged: "p95",
          target: { kind: "at-most", value: 3 },
        },
      ),
    ];
  },
};

async function latencies(sandbox: Sandbox, calls: number): Promise<number[]> {
  const found: number[] = [];
  await repeat(calls, async () => {
    found.push(await timed(() => sandbox.exec(["true"])));
  });
  return found;
}

async function several(
  count: number,
  open: () => Promise<Sandbox>,
): Promise<AsyncDisposable & { all: Sandbox[] }> {
  const all: Sandbox[] = [];
  const close = () => Promise.all(all.map((sandbox) => sandbox.close()));
  try {
    while (all.length < count) all.push(await open());
  } catch (error) {
    await close();
    throw error;
  }
  return {
    all,
    async [Symbol.asyncDispose]() {
      await close();
    },
  };
}

async function smallPolicy(directory: string): Promise<string> {
  const usual = new URL("../../../../sandbox-policies/workspace-write.toml", import.meta.url);
  let policy = await readFile(fileURLToPath(usual), "utf8");
  for (const [name, value] of Object.entries(HOSTILE_LIMITS))
    policy = policy.replace(new RegExp(`^${name} = .*$`, "gm"), `${name} = ${value}`);
  const file = join(directory, "small.toml");
  await writeFile(file, policy);
  return file;
}
