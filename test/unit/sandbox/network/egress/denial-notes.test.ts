import { describe, expect, it } from "vitest";
import type { EgressAttempt } from "../../../../../src/sandbox/egress/attempt.js";
import { DenialNotes } from "../../../../../src/sandbox/network/egress/sandbox-egress.js";

interface Given {
  host?: string;
  port?: number | null;
  channel?: number | null;
  atMs?: number;
  isDenied?: boolean;
}

/** An attempt of a process of channel 1 that no rule allows, unless `given` says otherwise. */
function attempt({ host = "a.test", port = 443, channel = 1, atMs = 100, isDenied = true }: Given = {}) {
  return {
    ...{ host, port, startedAtMs: atMs },
    owner: channel === null ? null : { channel, pid: 1, program: "curl", callId: null },
    outcome: isDenied ? { kind: "denied", denial: { kind: "no-rule" } } : { kind: "allowed" },
  } as unknown as EgressAttempt;
}

function notesOf(...given: Given[]): DenialNotes {
  const notes = new DenialNotes();
  for (const one of given) notes.add(attempt(one));
  return notes;
}

const command = { channel: 1, startedAtMs: 100, isOnTerminal: false };
/** The lines between the first and the last of the text. */
const lines = (text: string) =>
  text
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.replace(/\]$/, ""));

it("nothing is said of what was allowed, and of what other commands have tried", () => {
  const notes = notesOf({ isDenied: false }, { channel: 2, atMs: 500 });
  expect(notes.textFor(command)).toBe("");
  expect(notes.causesFor(1)).toEqual([]);
});

it("what was refused is said in a paragraph of its own, once, with the port if there is one", () => {
  const notes = notesOf({}, {}, { host: "b.test", port: null });
  const text = notes.textFor(command);
  expect(text).toMatch(/^\n\[brig refused connections\. Only the user can allow them, with --network:\n/);
  expect(text).toMatch(/\]\n$/);
  expect(lines(text)).toEqual([
    "  no rule of this sandbox's network allow-list allows a.test:443",
    "  no rule of this sandbox's network allow-list allows b.test",
  ]);
  expect(notes.causesFor(1)).toEqual([
    { kind: "network-rule", host: "a.test", port: 443, denial: "no-rule" },
    { kind: "network-rule", host: "b.test", port: null, denial: "no-rule" },
  ]);
});

it("a name that was looked up by nobody knows whom is said to the commands that ran by then", () => {
  const notes = notesOf({ host: "early.test", channel: null, atMs: 99 }, { host: "now.test", channel: null });
  const [line, ...others] = lines(notes.textFor(command));
  expect(line).toContain("now.test");
  expect(others).toEqual([]);
  expect(notes.causesFor(1)).toEqual([]);
  // An own attempt counts whenever it was made.
  expect(lines(notesOf({ atMs: 1 }).textFor(command))).toHaveLength(1);
});

it.for([
  [10, 10, null],
  [11, 10, "and 1 more"],
  [15, 10, "and 5 more"],
] as const)("of %i hosts %i are named", ([count, shown, more]) => {
  const notes = notesOf(...Array.from({ length: count }, (_, i) => ({ host: `${i}.test` })));
  const all = lines(notes.textFor(command));
  expect(all).toHaveLength(more === null ? shown : shown + 1);
  expect(all[0]).toContain("0.test");
  expect(all[9]).toContain("9.test");
  if (more !== null) expect(all.at(-1)).toBe(`  ${more}`);
  expect(notes.causesFor(1)).toHaveLength(shown);
});

describe("on a terminal", () => {
  const onTerminal = { ...command, isOnTerminal: true };
  const times = (count: number, given: Given) => Array.from({ length: count }, () => given);

  it("what was refused is one line of counts, the most frequent first", () => {
    const notes = notesOf({ host: "once.test" }, ...times(12, {}), { host: "name.test", port: null });
    expect(notes.textFor(onTerminal)).toBe(
      "\n[brig refused 14 connections: 12 × a.test:443, 1 × once.test:443, 1 × name.test; only the user can allow them, with --network]\n",
    );
    expect(notesOf({}).textFor(onTerminal)).toMatch(/refused 1 connection: 1 × a\.test:443; only/);
    expect(notesOf({ isDenied: false }).textFor(onTerminal)).toBe("");
  });

  it("another reason than that no rule allows the host is named", () => {
    const notes = new DenialNotes();
    const denial = { kind: "request", method: "POST", path: "/x" };
    notes.add({ ...attempt(), outcome: { kind: "denied", denial } } as EgressAttempt);
    expect(notes.textFor(onTerminal)).toContain("1 × no rule for requests to a.test:443 allows POST /x;");
  });

  it("five hosts are named, the others counted, and each attempt is in the sum", () => {
    const notes = notesOf(...Array.from({ length: 7 }, (_, i) => times(7 - i, { host: `${i}.test` })).flat());
    const text = notes.textFor(onTerminal);
    expect(text).toMatch(/refused 28 connections: 7 × 0\.test:443, .*, 3 × 4\.test:443, and 2 more;/);
    expect(text).not.toContain("5.test");
    expect(text.trim()).not.toContain("\n");
  });

  it("one host that is tried again and again pushes out nothing else", () => {
    const notes = notesOf({ host: "early.test" }, ...times(2000, {}));
    expect(notes.textFor(onTerminal)).toMatch(/2001 connections: 2000 × a\.test:443, 1 × early\.test:443/);
  });
});

it("of more than five hundred refusals the older ones are forgotten", () => {
  const given = Array.from({ length: 500 }, (_, i) => ({ host: `${i}.test`, channel: i }));
  const notes = notesOf(...given);
  expect(notes.causesFor(0)).toHaveLength(1);
  notes.add(attempt({ host: "last.test", channel: 500 }));
  expect(notes.causesFor(500)).toHaveLength(1);
  expect(notes.causesFor(251)).toHaveLength(1);
  expect(notes.causesFor(250)).toHaveLength(0);
  expect(notes.causesFor(0)).toHaveLength(0);
});
