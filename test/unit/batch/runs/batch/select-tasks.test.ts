import { describe, expect, it } from "vitest";
import { selectTasks } from "../../../../../src/batch/runs/batch/select-tasks.js";
import { randomNumbers, shuffled } from "../../../../../src/lib/random-numbers.js";
import { playedTask, playedTasks } from "../../../../support/played-attempts.js";

const tasks = [
  playedTask("git/history", { metadata: { tags: ["git"] } }),
  playedTask("git/merge", { metadata: { tags: ["git", "hard"] } }),
  playedTask("csv", { metadata: { tags: "hard" } }),
];
const namesOf = (selected: readonly { name: string }[]) => selected.map(({ name }) => name);

describe("the tasks of a run", () => {
  it.each([
    [{}, ["git/history", "git/merge", "csv"]],
    [{ include: ["git/*"] }, ["git/history", "git/merge"]],
    [{ include: ["csv", "*merge"] }, ["git/merge", "csv"]],
    [{ exclude: ["git/m????"] }, ["git/history", "csv"]],
    [{ tags: ["hard"] }, ["git/merge"]],
    [{ tags: ["git"], exclude: ["*history"] }, ["git/merge"]],
  ])("%j are %j", (selection, expected) => {
    expect(namesOf(selectTasks(tasks, selection))).toEqual(expected);
  });

  it.each([
    [{ include: ["nosuch"] }, 'no task is named "nosuch"'],
    [{ exclude: ["GIT/*"] }, 'no task is named "GIT/*"'],
    [{ tags: ["soft"] }, 'no task has the tag "soft"'],
    [{ exclude: ["*"] }, "no task is left"],
  ])("%j are refused: %s", (selection, message) => {
    expect(() => selectTasks(tasks, selection)).toThrow(message);
  });

  it("are a sample that depends on the seed and not on the order", () => {
    const many = playedTasks(50);
    const sample = namesOf(selectTasks(many, { sample: 5, seed: 1 }));
    expect(sample).toHaveLength(5);
    expect(sample).toEqual(sample.toSorted());
    const mixed = shuffled(many, randomNumbers(7));
    expect(namesOf(mixed)).not.toEqual(namesOf(many));
    expect(namesOf(selectTasks(mixed, { sample: 5, seed: 1 })).toSorted()).toEqual(sample);
    expect(namesOf(selectTasks(many, { sample: 5, seed: 2 }))).not.toEqual(sample);
    expect(namesOf(selectTasks(many.slice(0, 3), { sample: 5 }))).toHaveLength(3);
  });
});
