import { describe, expect, it } from "vitest";
import { processEnvironment } from "../../../../src/services/exec-server/environment.js";

const inherited = { PATH: "/usr/bin", HOME: "/home/brig", LANG: "C.UTF-8", API_KEY: "of the image" };
const all = { inherit: "all", ignoreDefaultExcludes: true, exclude: [], set: {}, includeOnly: [] } as const;

describe("the environment of a process", () => {
  it.each([
    ["all of the sandbox's", { ...all }, inherited],
    ["nothing", { ...all, inherit: "none" as const }, {}],
    [
      "what every program needs",
      { ...all, inherit: "core" as const },
      { PATH: "/usr/bin", HOME: "/home/brig" },
    ],
    [
      "without what looks like a secret",
      { ...all, ignoreDefaultExcludes: false },
      { ...inherited, API_KEY: undefined },
    ],
    [
      "without a pattern, whatever its case",
      { ...all, exclude: ["l?n*"] },
      { ...inherited, LANG: undefined },
    ],
    ["with what is set", { ...all, set: { A: "1" } }, { ...inherited, A: "1" }],
    [
      "only what is included",
      { ...all, set: { A: "1" }, includeOnly: ["P*", "A"] },
      { PATH: "/usr/bin", A: "1" },
    ],
  ])("%s", (_, policy, expected) => {
    const absent = { PATH: undefined, HOME: undefined, LANG: undefined, API_KEY: undefined };
    expect(processEnvironment(inherited, { policy, env: {} })).toEqual({ ...absent, ...expected });
  });

  it("is only what the client sends where there is no policy", () => {
    expect(processEnvironment({ PATH: "/bin" }, { policy: null, env: { B: "2" } })).toEqual({
      PATH: undefined,
      B: "2",
    });
  });

  it("has what the client sends above all", () => {
    expect(
      processEnvironment(inherited, { policy: { ...all, exclude: ["*"] }, env: { PATH: "/x" } }),
    ).toMatchObject({
      PATH: "/x",
      HOME: undefined,
    });
  });

  it("is made in time of a pattern with many stars", () => {
    const exclude = [`${"*a".repeat(500)}*b`];
    const long = { ["a".repeat(5000)]: "1" };
    expect(processEnvironment(long, { policy: { ...all, exclude }, env: {} })).toEqual(long);
  });
});
