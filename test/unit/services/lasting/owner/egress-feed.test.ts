import { expect, it } from "vitest";
import { BrigError } from "../../../../../src/errors.js";
import type { EgressAttempt, EgressListener, Sandbox } from "../../../../../src/sandbox/index.js";
import { EgressFeed } from "../../../../../src/services/lasting/owner/egress-feed.js";

/** A feed, and what tells it of attempts and of a canary. */
function opened() {
  let tell: EgressListener = () => undefined;
  let sent: (error: Promise<BrigError>) => void = () => undefined;
  const watchEgress: Sandbox["watchEgress"] = (listener, { onCanarySent } = {}) => {
    tell = listener;
    if (onCanarySent !== undefined) sent = onCanarySent;
  };
  const feed = new EgressFeed({ watchEgress } as Sandbox);
  const attempt = (callId: string | null, path: string | null = null) =>
    tell({
      host: "example.com",
      path,
      owner: { channel: 1, pid: 1, program: "curl", callId },
    } as EgressAttempt);
  return { feed, attempt, sent: (error: BrigError) => sent(Promise.resolve(error)) };
}

it("tells each session of the attempts of its own calls, once", () => {
  const { feed, attempt } = opened();
  attempt("a:call_1");
  attempt("b:call_1");
  attempt(null);
  const first = feed.after(0, "a:");
  expect(first.attempts.map(({ owner }) => owner?.callId)).toEqual(["a:call_1"]);
  expect(feed.after(first.next, "a:")).toEqual({ attempts: [], next: 3, canary: null });
  attempt("a:call_2");
  expect(feed.after(first.next, "a:").attempts).toHaveLength(1);
  // Another owner has begun to count anew.
  expect(feed.after(100, "a:")).toMatchObject({ attempts: [], next: 4 });
});

it("keeps only so many attempts and so much of each, and goes on counting", () => {
  const { feed, attempt } = opened();
  for (let at = 0; at < 25_000; at++) attempt("a:1", `/${"x".repeat(2000)}`);
  const { attempts, next } = feed.after(0, "a:");
  expect(next).toBe(25_000);
  expect(attempts.length).toBeGreaterThanOrEqual(5000);
  expect(attempts.length).toBeLessThan(10_000);
  expect(attempts[0]?.path).toHaveLength(1024);
  expect(feed.after(24_999, "a:").attempts).toHaveLength(1);
});

it("tells a session of a canary that was sent since it began, and of none before", async () => {
  const { feed, attempt, sent } = opened();
  attempt("a:1");
  sent(new BrigError("a canary was sent", { code: "sandbox.canary-sent" }));
  await expect.poll(() => feed.after(0, "a:").canary).toMatchObject({ code: "sandbox.canary-sent" });
  attempt("a:1");
  expect(feed.after(feed.count, "a:").canary).toBeNull();
});
