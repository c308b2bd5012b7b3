import { expect, it } from "vitest";
import { findSandbox, type RunningSandbox } from "../../../../src/cli/ports/find-sandbox.js";

const running = ["aaaa-1", "aaab-2", "bbbb-3"].map((sandbox, index): RunningSandbox => {
  const session = index === 2 ? null : (["work", "work-again"][index] ?? null);
  return { sandbox, session, command: "", workingDirectory: "/", address: "", token: "", pid: 1 };
});
const found = (wanted: string | undefined, among = running) => findSandbox(among, wanted).sandbox;

it("a sandbox is found by the start of its id, or its session", () => {
  expect(found("b")).toBe("bbbb-3");
  expect(found("aaab")).toBe("aaab-2");
  expect(found("work-")).toBe("aaab-2");
  expect(found(undefined, running.slice(2))).toBe("bbbb-3");
});

it("a whole name comes before the start of another one", () => {
  expect(found("work")).toBe("aaaa-1");
});

it.each([
  ["aaa", running, "2 running sandboxes are"],
  ["", running, "3 running sandboxes are"],
  [undefined, running, "3 sandboxes are running"],
  [undefined, [], "no sandbox is running"],
  ["c", running, 'no running sandbox is "c"'],
])("%j is refused where it is not one", (wanted, among, message) => {
  expect(() => found(wanted, [...among])).toThrow(message);
});
