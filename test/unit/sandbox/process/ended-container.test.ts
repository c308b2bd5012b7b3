import { expect, it } from "vitest";
import { endedContainer, endedRunner } from "../../../../src/sandbox/process/ended-container.js";

type Ended = Parameters<typeof endedContainer>[0];
type Events = NonNullable<Ended["events"]>;

/** "die 137 @5000" is the end with this exit code after five seconds. */
function events(...texts: string[]): Events {
  return texts.map((text) => {
    const [, action = "", code, at] = /^(\S+)(?: (\d+))?(?: @(\d+))?$/.exec(text) ?? [];
    return { action, exitCode: code === undefined ? null : Number(code), atMs: Number(at ?? 0) };
  });
}

const reasonOf = (ended: Partial<Ended>) =>
  endedContainer({ state: null, events: null, leaseIsOver: false, ...ended }).reason;

it.for<[string, Partial<Ended>]>([
  ["killed", { events: events("create", "start", "kill", "die 137", "destroy") }],
  ["killed", { events: events("start", "oom @4900", "kill", "die 137 @5000") }],
  ["killed", { events: events("start", "stop", "die 70"), leaseIsOver: true }],
  ["lease", { events: events("start", "die 70") }],
  ["killed", { events: events("start", "die 0"), leaseIsOver: true }],
  ["oom", { events: events("start", "oom @4000", "die 137 @5000") }],
  ["oom", { events: events("start", "die 137 @5000", "oom @5500") }],
  ["killed", { events: events("start", "oom @1000", "die 137 @5000") }],
  ["killed", { events: events("start", "oom @4900", "die 1 @5000") }],
  ["killed", { events: events("start", "oom @4900", "die 137 @4950", "start", "die 137 @5000") }],
  ["killed", { events: events("start", "kill", "die 137", "start", "die 137") }],
  ["restarted", { events: events("start", "kill", "die 137", "stop", "start", "restart"), starts: 1 }],
  ["restarted", { events: events("start", "die 0", "start", "kill", "die 137", "start"), starts: 2 }],
  ["restarted", { events: events("start", "kill", "die 137", "start", "die 70"), starts: 1 }],
  ["lease", { events: events("start", "kill", "die 137", "start", "die 70"), starts: 2 }],
  ["engine", { events: events("start"), starts: 2 }],
  ["engine", { events: events() }],
  ["engine", { events: events("create", "start") }],
  ["engine", { events: events("start", "die 137", "start") }],
  ["lease", { events: events("start", "die"), state: { exitCode: 70, oomKilled: false } }],
  ["lease", { state: { exitCode: 70, oomKilled: true } }],
  ...[71, 72, 73, 74].flatMap((exitCode): [string, Partial<Ended>][] => [
    ["machine-share", { events: events("start", `die ${exitCode}`) }],
    ["machine-share", { state: { exitCode, oomKilled: false } }],
    ["killed", { events: events("start", "kill", `die ${exitCode}`) }],
  ]),
  ["oom", { state: { exitCode: 137, oomKilled: true } }],
  ["killed", { state: { exitCode: 1, oomKilled: true } }],
  ["killed", { state: { exitCode: 137, oomKilled: false }, leaseIsOver: true }],
  ["lease", { leaseIsOver: true }],
  ["killed", {}],
])("the reason is %s for %j", ([reason, ended]) => {
  expect(reasonOf(ended)).toBe(reason);
});

it("says of a second runner that commands took too much, and of any other end nothing", () => {
  expect(endedRunner(71)).toMatchObject({
    ...{ code: "sandbox.gone", reason: "machine-share" },
    message: expect.stringMatching(/40000 locks of files.*memory of the machine/),
  });
  for (const code of [0, 1, 70, 75, 137, null]) expect(endedRunner(code)).toBeNull();
});
