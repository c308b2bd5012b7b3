import { expect, it } from "vitest";
import { type CallCause, causeSentences, describeCause } from "../../../../src/sandbox/output/call-cause.js";

const full = { path: "/tmp", lacks: "bytes", limit: 16 * 1024 ** 2, wasFull: false } as const;

it.for<[CallCause, RegExp]>([
  [{ kind: "memory-limit", limitBytes: 1024 ** 3 }, /^the sandbox ran out of memory: .* limit of 1\.0 GiB$/],
  [{ kind: "memory-limit", limitBytes: null }, /at the limit$/],
  [{ kind: "machine-memory" }, /below its memory limit/],
  [{ kind: "process-limit", limit: 64 }, /its limit of 64 processes and threads$/],
  [{ kind: "process-limit", limit: null }, /a limit outside of the sandbox$/],
  [
    { kind: "cpu-limit", cpus: 1, share: 0.954 },
    /limit of 1 processor slowed this command down for 95 % of its time$/,
  ],
  [{ kind: "cpu-limit", cpus: 0.5, share: 1 }, /limit of 0\.5 processors slowed this command down for 100 %/],
  [{ kind: "cpu-limit", cpus: null, share: 1 }, /limit of processors slowed/],
  [{ kind: "full-directory", ...full }, /^\/tmp is full: 16 MiB are used$/],
  [
    { kind: "full-directory", ...full, lacks: "files", limit: 500, wasFull: true },
    /: there are 500 files, and it was full already when/,
  ],
  [{ kind: "disk-full", ...full, path: "/a b" }, /^the disk that holds "\/a b" is full: /],
  [{ kind: "network-rule", host: "a.example", port: 443, denial: "no-rule" }, / to a\.example:443$/],
  [{ kind: "network-rule", host: "a.example", port: null, denial: "no-rule" }, / to a\.example$/],
])("says in words what %j is", ([cause, words]) => {
  expect(describeCause(cause)).toMatch(words);
});

it("prints no character of a path that could do something to a terminal, or begin another line", () => {
  const text = describeCause({ kind: "disk-full", ...full, path: "/a\x1b[2J\u009b1m\n[brig: x]\u202e" });
  expect(text).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  expect(text).toContain('"/a');
});

it("leaves out what the output says already", () => {
  const refused: CallCause = { kind: "network-rule", host: "a.example", port: 443, denial: "no-rule" };
  expect(causeSentences([refused, { kind: "full-directory", ...full }])).toEqual([
    "/tmp is full: 16 MiB are used",
  ]);
});
