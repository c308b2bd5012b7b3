import { describe, expect, it } from "vitest";
import { takeTurns } from "../../bench/sampling.js";

/** Three sides that note their turns in one list. */
function contenders(turns: string[]) {
  const side = (name: string, batch: number) => ({
    name,
    batch,
    async sample() {
      turns.push(name);
      return turns.length;
    },
  });
  return { a: side("a", 1), b: side("b", 1), c: side("c", 1) };
}

const signal = new AbortController().signal;

describe("measuring in turns", () => {
  it("lets every side follow every other one about equally often", async () => {
    const turns: string[] = [];
    await takeTurns(contenders(turns), { rounds: 600, signal });
    const counts = new Map<string, number>();
    for (const [index, name] of turns.slice(1).entries()) {
      const pair = `${turns[index]} then ${name}`;
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
    const others = [...counts].filter(([pair]) => pair[0] !== pair.at(-1)).map(([, count]) => count);
    expect(others).toHaveLength(6);
    expect(Math.max(...others) / Math.min(...others)).toBeLessThan(1.25);
  });

  it("gives each side its samples round by round, a batch in each", async () => {
    const turns: string[] = [];
    const { a, b } = contenders(turns);
    const samples = await takeTurns({ a: { ...a, batch: 2 }, b }, { rounds: 2, signal });
    expect(turns).toEqual(["a", "a", "b", "a", "a", "b"]);
    expect(samples.a).toEqual({
      name: "a",
      rounds: [
        [1, 2],
        [4, 5],
      ],
    });
    expect(samples.b).toEqual({ name: "b", rounds: [[3], [6]] });
  });

  it("stops at the sample during which it was interrupted", async () => {
    const turns: string[] = [];
    const interruption = new AbortController();
    const { a } = contenders(turns);
    const interrupting = {
      name: "b",
      batch: 3,
      async sample() {
        interruption.abort();
        return 0;
      },
    };
    await expect(takeTurns({ a, interrupting }, { rounds: 9, signal: interruption.signal })).rejects.toThrow(
      "aborted",
    );
    expect(turns).toEqual(["a"]);
  });
});
