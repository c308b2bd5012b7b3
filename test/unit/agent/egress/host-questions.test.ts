import { setImmediate } from "node:timers/promises";
import { describe, expect, it, vi } from "vitest";
import { HostQuestions } from "../../../../src/agent/egress/host-questions.js";
import { lazyHostQuestions } from "../../../../src/agent/egress/lazy-host-questions.js";
import type { SessionSetting } from "../../../../src/agent/session/setting.js";
import type { ApprovalPolicy } from "../../../../src/sandbox/policy/approval-policy.js";
import type { UserQuestion } from "../../../../src/tools/session/request-user-input.js";

const owner = { channel: 3, pid: 7, program: "curl", callId: "call_1" };
const asked = { host: "a.example:443", isOwnMachine: false, owner };

/** A user who answers when the test says so. */
function userWho() {
  const questions: UserQuestion[] = [];
  const answers: ((text: string | null) => void)[] = [];
  return {
    questions,
    answer: (text: string | null) => answers.shift()?.(text),
    ask: ([question]: readonly UserQuestion[], { signal }: { signal?: AbortSignal | undefined }) =>
      new Promise<Record<string, string[]> | null>((resolve, reject) => {
        if (question === undefined) throw new Error("no question");
        questions.push(question);
        answers.push((text) => resolve(text === null ? null : { [question.id]: [text] }));
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  };
}

function opened(
  turn: AbortController | null = new AbortController(),
  remember?: (host: string) => Promise<void>,
) {
  const user = userWho();
  return { user, questions: new HostQuestions(user, { signal: () => turn?.signal ?? null, remember }) };
}

const ALWAYS = "yes, always in this directory";

describe("an answer for ever", () => {
  it("keeps the host, and allows it for the session", async () => {
    const kept: string[] = [];
    const { user, questions } = opened(undefined, async (host) => void kept.push(host));
    const answer = questions.ask(asked);
    expect(user.questions[0]?.options?.map(({ label }) => label)).toEqual([
      ...["yes, for this command", "yes, until the session ends", "no", ALWAYS],
    ]);
    user.answer(ALWAYS);
    expect(await answer).toEqual({ kind: "session" });
    expect(kept).toEqual(["a.example:443"]);
  });

  it("is not offered, and is a no, where nothing can be kept", async () => {
    const { user, questions } = opened();
    const answer = questions.ask(asked);
    expect(user.questions[0]?.options).toHaveLength(3);
    user.answer(ALWAYS);
    expect(await answer).toMatchObject({ kind: "declined" });
  });

  it("allows the host for the session if it cannot be kept, which is a warning", async () => {
    const warnings: unknown[] = [];
    const emitted = vi.spyOn(process, "emitWarning").mockImplementation((one) => void warnings.push(one));
    const failure = new Error("the disk is full");
    const { user, questions } = opened(undefined, () => Promise.reject(failure));
    const answer = questions.ask(asked);
    user.answer(ALWAYS);
    expect(await answer).toEqual({ kind: "session" });
    expect(warnings).toEqual([failure]);
    emitted.mockRestore();
  });
});

describe("a question about a host", () => {
  it("is asked once for all connections that wait, and names the program and the host", async () => {
    const { user, questions } = opened();
    const waiting = [asked, asked, asked].map((one) => questions.ask(one));
    await setImmediate();
    expect(user.questions).toHaveLength(1);
    expect(user.questions[0]?.question).toContain('"curl"');
    expect(user.questions[0]?.question).toContain("a.example:443");
    user.answer("yes, for this command");
    expect(await Promise.all(waiting)).toEqual(Array(3).fill({ kind: "once" }));
  });

  it.each([{ ...owner, channel: 4 }, null])(
    "is asked again for a program that waits too, but is not of the command that was allowed: %j",
    async (other) => {
      const { user, questions } = opened();
      const first = questions.ask(asked);
      const second = questions.ask({ ...asked, owner: other });
      await setImmediate();
      expect(user.questions).toHaveLength(1);
      user.answer("yes, for this command");
      expect(await first).toEqual({ kind: "once" });
      await setImmediate();
      expect(user.questions).toHaveLength(2);
      user.answer("no");
      expect(await second).toMatchObject({ kind: "declined" });
    },
  );

  it("is answered for all programs that wait by a yes until the session ends, or a no", async () => {
    for (const text of ["yes, until the session ends", "no"]) {
      const { user, questions } = opened();
      const waiting = [3, 4].map((channel) => questions.ask({ ...asked, owner: { ...owner, channel } }));
      user.answer(text);
      const [first, second] = await Promise.all(waiting);
      expect(second).toEqual(first);
      expect(user.questions).toHaveLength(1);
    }
  });

  it("is not asked again for the same command and host, whatever was answered, but for another command", async () => {
    const { user, questions } = opened();
    const first = questions.ask(asked);
    user.answer("it is not ours\u0000\nreally");
    expect(await first).toEqual({ kind: "declined", reason: "it is not ours\u0000 really" });
    expect(await questions.ask(asked)).toMatchObject({ kind: "declined" });
    expect(user.questions).toHaveLength(1);
    const next = questions.ask({ ...asked, owner: { ...owner, channel: 9 } });
    user.answer("yes, until the session ends");
    expect(await next).toEqual({ kind: "session" });
    expect(user.questions).toHaveLength(2);
  });

  it.each(["y", "yes", "1", "", "no", null])("takes %j for no", async (text) => {
    const { user, questions } = opened();
    const answer = questions.ask(asked);
    user.answer(text);
    expect(await answer).toMatchObject({ kind: "declined" });
  });

  it("is withdrawn with the turn, and not asked between turns", async () => {
    const turn = new AbortController();
    const { questions } = opened(turn);
    const answer = questions.ask(asked);
    turn.abort();
    expect(await answer).toEqual({ kind: "not-asked" });
    const between = opened(null);
    expect(await between.questions.ask(asked)).toEqual({ kind: "not-asked" });
    expect(between.user.questions).toEqual([]);
  });

  it("is asked ten times about one command at most", async () => {
    const { user, questions } = opened();
    const answers = Array.from({ length: 30 }, (_, i) =>
      questions.ask({ ...asked, host: `h${i}.example:443` }),
    );
    await setImmediate();
    expect(user.questions).toHaveLength(10);
    for (let i = 0; i < 10; i++) user.answer("no");
    expect((await Promise.all(answers)).filter(({ kind }) => kind === "not-asked")).toHaveLength(20);
  });

  it("warns about a port of the user's own machine", async () => {
    const { user, questions } = opened();
    void questions.ask({ ...asked, isOwnMachine: true });
    expect(user.questions[0]?.question).toContain("your own machine");
  });

  const granular = (sandbox_approval: boolean) =>
    ({ granular: { sandbox_approval } }) as unknown as ApprovalPolicy;
  it.each([
    ["never", 0],
    [undefined, 0],
    [granular(false), 0],
    ["on-request", 1],
    ["untrusted", 1],
    [granular(true), 1],
  ] as const)("with the approval policy %j is asked %d times", async (approvalPolicy, count) => {
    const user = userWho();
    const turn = new AbortController();
    const network = { kind: "allowlist", hosts: [] } as const;
    const setting = () => ({ approvalPolicy, network }) as unknown as SessionSetting;
    const ask = lazyHostQuestions({ toolOptions: { user } }, { setting, signal: () => turn.signal });
    void ask?.(asked);
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(user.questions).toHaveLength(count);
  });

  it("is not asked in a session without a network, whose set-up has left an empty list", async () => {
    const user = userWho();
    const turn = new AbortController();
    const setting = () => ({ approvalPolicy: "on-request", network: { kind: "none" } }) as SessionSetting;
    const ask = lazyHostQuestions({ toolOptions: { user } }, { setting, signal: () => turn.signal });
    expect(await ask?.(asked)).toEqual({ kind: "not-asked" });
    expect(user.questions).toEqual([]);
  });
});
