import { describe, expect, it } from "vitest";
import { bisectStates } from "../../../../src/cli/bisect/bisect-states.js";
import { beginningText, triedText } from "../../../../src/cli/bisect/bisect-text.js";
import type { SessionState } from "../../../../src/cli/bisect/session-states.js";
import type { Attempt } from "../../../../src/cli/bisect/try-state.js";
import { BrigError } from "../../../../src/errors.js";
import { emptyFold } from "../../../../src/sandbox/output/line-fold.js";
import type { ExitStatus } from "../../../../src/sandbox/sandbox-types.js";

const states = [0, 1, 2, 3, 4].map(
  (point): SessionState => ({
    snapshot: "s",
    point,
    origin: { kind: point === 0 ? "start" : "unknown" },
  }),
);
const error = new BrigError("the directory \x1b[2Jx has changed", { code: "workspace.conflict" });

/** The states of these points cannot be made; the others fail from `badFrom` on. */
const bisect = (notMade: readonly number[], badFrom: number) =>
  bisectStates(states, async ({ point }): Promise<Attempt> => {
    if (notMade.includes(point)) return { kind: "not-made", error };
    const verdict = point >= badFrom ? "bad" : "good";
    const status = { exitCode: verdict === "bad" ? 1 : 0, durationMs: 1 } as ExitStatus;
    return { kind: "ran", verdict, status, output: emptyFold };
  });

describe("a state that cannot be made", () => {
  it("is passed over in the middle, and may be the first bad one", async () => {
    const { outcome, tries } = await bisect([2], 3);
    expect(outcome).toMatchObject({
      kind: "found",
      lastGood: { point: 1 },
      unjudged: [{ point: 2 }],
      firstBad: { point: 3 },
    });
    const tried = tries.find(({ attempt }) => attempt.kind === "not-made");
    expect(tried && triedText(tried)).toBe(
      "at restore point 2 it cannot be tried: the directory x has changed\n",
    );
  });

  it.each([0, 4])("is an error at an end, as state %s", async (point) => {
    await expect(bisect([point], 3)).rejects.toBe(error);
  });
});

describe("the words for a state", () => {
  const call = { callId: "c", name: "exec_command", input: "{}" };
  const origin = (more: object) =>
    ({ kind: "step", change: { step: 7, call, point: {} }, agent: null, turn: null, ...more }) as never;
  const attempt = { kind: "not-made", error } as const;
  const words = (made: SessionState["origin"]) =>
    triedText({ state: { snapshot: "s", point: 1, origin: made }, attempt }).split(" it cannot")[0];

  it("count the calls, and name the step for brig resume --at", () => {
    const turn = { number: 3, count: 5 };
    expect(words(origin({ turn }))).toBe("after call 3 of 5 (step 7)");
    const agent = { id: "1", nickname: "Ada" };
    expect(words(origin({ turn, agent }))).toBe("after call 3 of 5 (step 7 of the agent Ada)");
    expect(words(origin({ change: { step: 7, call: null, point: {} } }))).toBe("after /undo before step 7");
  });

  it("begin with how many calls there are, and how many states of anything else", () => {
    const state = (made: SessionState["origin"]): SessionState => ({ snapshot: "s", point: 1, origin: made });
    const called = state(origin({ turn: { number: 1, count: 1 } }));
    const start = state({ kind: "start" });
    const begin = (...of: SessionState[]) => beginningText({ workspace: "/w", states: of }, { tryCount: 2 });
    expect(begin(start, called)).toBe("brig: 1 call changed /w; about 2 tries are needed\n");
    expect(begin(start, called, called, state({ kind: "unknown" }))).toBe(
      "brig: 2 calls changed /w, and something else did once; about 2 tries are needed\n",
    );
  });
});
