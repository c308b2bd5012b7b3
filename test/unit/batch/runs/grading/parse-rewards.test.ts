import { describe, expect, it } from "vitest";
import { mainReward, parseRewards } from "../../../../../src/batch/runs/grading/rewards.js";

const json = (text: string) => parseRewards({ json: text, text: null });
const plain = (text: string) => parseRewards({ json: null, text });

describe("reward files", () => {
  it.each([
    ["1\n", 1],
    ["0.25", 0.25],
    ["-1e-2", -0.01],
    [" .5 ", 0.5],
  ])("reward.txt %j is a number", (text, reward) => {
    expect(plain(text)).toEqual({ kind: "rewards", rewards: { reward } });
  });

  it.each(["", " \n", "1 2", "yes", "NaN", "nan", "Infinity", "inf", "1e999", "0x10", "1_000", "1\0"])(
    "reward.txt %j is none",
    (text) => {
      expect(plain(text)).toMatchObject({ kind: "invalid" });
    },
  );

  it("keep the numbers of reward.json and leave out the rest", () => {
    const text =
      '{"reward": 1, "speed": 0.5, "passed": true, "name": "1", "more": {"reward": 9}, "none": null}';
    expect(json(text)).toEqual({ kind: "rewards", rewards: { reward: 1, speed: 0.5 } });
  });

  it.each(["", "[1]", "1", "null", '"1"', "{", '{"reward": NaN}', '{"reward": 1e999}', '{"reward": 1} 2'])(
    "reward.json %j is invalid",
    (text) => {
      expect(json(text)).toMatchObject({ kind: "invalid" });
    },
  );

  it.each([
    '{"reward": 0, "note": "", "reward": 1}',
    '{"reward": 0, "note": "\\"", "\\u0072eward": 1}',
    '{"more": {"reward": 1}, "reward": 0 , "reward" : 1}',
  ])("reward.json %j is invalid, because a key stands there twice", (text) => {
    expect(json(text)).toMatchObject({ kind: "invalid", reason: 'reward.json names "reward" twice' });
  });

  it("may repeat keys and braces inside of values", () => {
    const text =
      '{"a": {"reward": 1, "b": [{"reward": 1}]}, "reward": 0, "c": "}\\", \\"reward\\": 1", "\\\\": 2}';
    expect(json(text)).toEqual({ kind: "rewards", rewards: { reward: 0, "\\": 2 } });
  });

  it("take the reward from reward.txt only if reward.json has none", () => {
    expect(parseRewards({ json: '{"reward": 0}', text: "1" })).toEqual({
      kind: "rewards",
      rewards: { reward: 0 },
    });
    expect(parseRewards({ json: '{"speed": 2}', text: "1" })).toEqual({
      kind: "rewards",
      rewards: { speed: 2, reward: 1 },
    });
    expect(parseRewards({ json: '{"speed": 2}', text: "one" })).toMatchObject({ kind: "invalid" });
    expect(parseRewards({ json: "{", text: "1" })).toMatchObject({ kind: "invalid" });
  });

  it("may be missing", () => {
    expect(parseRewards({ json: null, text: null })).toEqual({ kind: "none" });
  });

  it("name a property of every object without becoming one", () => {
    const found = json('{"__proto__": 1, "constructor": 2}');
    expect(found.kind === "rewards" && Object.entries(found.rewards)).toEqual([
      ["__proto__", 1],
      ["constructor", 2],
    ]);
  });

  it("count by the key reward, or by the only key", () => {
    expect(mainReward({ reward: 0.5, other: 1 })).toBe(0.5);
    expect(mainReward({ other: 1 })).toBe(1);
    expect(mainReward({ one: 1, two: 1 })).toBeNull();
    expect(mainReward({})).toBeNull();
  });
});
