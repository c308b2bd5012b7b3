import { describe, expect, it } from "vitest";
import {
  attackBatches,
  attackLibrary,
  findAttack,
} from "../../../../../src/batch/runs/attacks/attack-library.js";

describe("the library of attacks", () => {
  it("has each name once, in the form that a command line takes", () => {
    const names = attackLibrary.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z0-9]+(-[a-z0-9]+)*$/);
  });

  it("finds an attack by its name, and names all where there is none", () => {
    expect(findAttack("trojan-curl").name).toBe("trojan-curl");
    expect(() => findAttack("toString")).toThrow(
      expect.objectContaining({ code: "usage.invalid", hint: expect.stringContaining("pytest-conftest") }),
    );
  });

  it("puts each attack into one batch, in which no two replace the same thing", () => {
    const batches = attackBatches();
    expect(
      batches
        .flat()
        .map(({ name }) => name)
        .toSorted(),
    ).toEqual(attackLibrary.map(({ name }) => name).toSorted());
    for (const batch of batches) {
      const claims = batch.flatMap((attack) => attack.claims);
      expect(new Set(claims).size).toBe(claims.length);
    }
  });
});
