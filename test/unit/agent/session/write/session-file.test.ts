import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseScript } from "../../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../../src/agent/model/script/scripted-client.js";
import { runAgent } from "../../../../../src/agent/run-agent.js";
import {
  continueSessionFile,
  lockSessionFile,
  newSessionFile,
  openSessionFile,
  type SessionLog,
  type SessionRecord,
} from "../../../../../src/agent/session/write/session-file.js";
import { type CurrentProcess, holderOf, readCurrentProcess } from "../../../../../src/lib/file-lock.js";
import { MemorySandbox } from "../../../../support/memory-sandbox.js";

const writer = fileURLToPath(new URL("../../../../fixtures/session-writer.ts", import.meta.url));
const now = () => new Date(2026, 10, 5, 9, 8, 7, 654);
let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "brig-session-"));
});

afterEach(() => {
  rmSync(home, { recursive: true });
});

function numbered(n: number): SessionRecord {
  return { type: "event_msg", payload: { n } };
}

function linesOf({ path }: SessionLog): string[] {
  return readFileSync(path ?? "", "utf8")
    .trimEnd()
    .split("\n");
}

function numbersIn(log: SessionLog): unknown[] {
  const isNotBlank = (line: string) => line !== "";
  return linesOf(log)
    .filter(isNotBlank)
    .flatMap((line) => {
      try {
        return [JSON.parse(line).payload.n];
      } catch {
        return ["torn"];
      }
    });
}

/** Writes so many bytes at a time; null is a full disk. */
function scriptedWrite(sizes: (number | null)[]) {
  return (file: number, bytes: Uint8Array, at: number) => {
    const size = sizes.shift();
    if (size === null) throw Object.assign(new Error("write failed"), { code: "ENOSPC" });
    return writeSync(file, bytes, at, Math.min(bytes.length - at, size ?? 100_000));
  };
}

describe("a new session file", () => {
  it("is named after the local time and the thread, in a folder for the day", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    expect(log.path).toBe(join(home, "sessions/2026/11/05/rollout-2026-11-05T09-08-07-abc.jsonl"));
  });

  it("is not there before there is something to keep, and neither is its folder", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.close();
    expect(readdirSync(home)).toEqual([]);
  });

  it("holds one object to a line, with the time in UTC", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append({ type: "event_msg", payload: { type: "task_started", text: "a\nb" } });
    log.append({ type: "brig.call", payload: { call_id: "c" } });
    log.close();
    expect(linesOf(log)).toHaveLength(2);
    expect(JSON.parse(linesOf(log)[0] ?? "")).toEqual({
      timestamp: now().toISOString(),
      type: "event_msg",
      payload: { type: "task_started", text: "a\nb" },
    });
  });

  it("has every line on disk as soon as it is appended", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append(numbered(1));
    expect(readFileSync(log.path ?? "", "utf8")).toMatch(/\}\n$/);
    log.close();
  });

  it("is the user's alone", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append(numbered(1));
    expect(statSync(log.path ?? "").mode & 0o777).toBe(0o600);
    expect(statSync(join(home, "sessions")).mode & 0o777).toBe(0o700);
    log.close();
  });

  it("never takes the place of a file that is there", async () => {
    const [first, second] = [
      await openSessionFile({ home, threadId: "abc", now }),
      await openSessionFile({ home, threadId: "abc", now }),
    ];
    first.append(numbered(1));
    expect(() => {
      second.append(numbered(2));
    }).toThrow(expect.objectContaining({ code: "session.invalid" }));
    expect(numbersIn(first)).toEqual([1]);
    first.close();
  });

  it("is refused where it cannot be created, once, and then keeps nothing", async () => {
    const file = join(home, "file");
    writeFileSync(file, "");
    const log = await openSessionFile({ home: file, threadId: "abc", now });
    expect(() => {
      log.append(numbered(1));
    }).toThrow(`cannot create the session file ${file}/sessions/`);
    log.append(numbered(2));
    expect(log.path).toBeNull();
    log.close();
  });

  it("is refused where its very first line does not fit, and leaves nothing", async () => {
    const log = await newSessionFile({ home, threadId: "abc", now }, scriptedWrite([5, null]));
    expect(() => {
      log.append(numbered(1));
    }).toThrow(/cannot create .*: no space left on the device/);
    expect(readdirSync(join(home, "sessions/2026/11/05"))).toEqual([]);
  });

  it("is refused on a read-only file system, with the way out", async () => {
    const mounted = 'mount -t tmpfs -o ro none "$0" && exec "$@"';
    const command = [process.execPath, "--import", "tsx", writer, "new", home];
    const done = await execa("unshare", ["-Urm", "sh", "-c", mounted, home, ...command], { reject: false });
    expect(done.stderr).toContain("the file system is read-only");
    expect(done.stderr).toContain("--ephemeral");
  });
});

describe("a session file that cannot be written to", () => {
  it("is whole when the disk is full, says so, and has what was missing as soon as there is room", async () => {
    const mounted = 'mount -t tmpfs -o size=128k none "$0" && exec "$@"';
    const command = [process.execPath, "--import", "tsx", writer, "fill", home];
    const done = await execa("unshare", ["-Urm", "sh", "-c", mounted, home, ...command]);
    const { troubles, appended, whenFull, atTheEnd } = JSON.parse(done.stdout);
    const numbers = (text: string) =>
      text
        .trimEnd()
        .split("\n")
        .map((line) => JSON.parse(line).payload.n);
    const firstN = (count: number) => Array.from({ length: count }, (_, n) => n);
    expect(troubles).toEqual([
      null,
      expect.stringMatching(/is incomplete, 1 record is missing at its end: no space left on the device$/),
      expect.stringMatching(/is incomplete, 2 records are missing/),
      null,
    ]);
    expect(appended).toBeGreaterThan(20);
    expect(numbers(whenFull)).toEqual(firstN(appended - 3));
    expect(numbers(atTheEnd)).toEqual(firstN(appended));
  });

  it("takes back a line of which only a part could be written", async () => {
    const write = scriptedWrite([1000, 20, null]);
    const log = await newSessionFile({ home, threadId: "abc", now }, write);
    log.append(numbered(1));
    log.append(numbered(2));
    expect(numbersIn(log)).toEqual([1]);
    expect(log.trouble).toContain("no space left");
    log.append(numbered(3));
    expect(numbersIn(log)).toEqual([1, 2, 3]);
    expect(log.trouble).toBeNull();
    log.close();
  });

  it("ends such a part where another process has written behind it", async () => {
    let path = "";
    const sizes = [1000, 20, null];
    const scripted = scriptedWrite(sizes);
    const write = (file: number, bytes: Uint8Array, at: number) => {
      if (sizes[0] === null) appendFileSync(path, "other\n");
      return scripted(file, bytes, at);
    };
    const log = await newSessionFile({ home, threadId: "abc", now }, write);
    path = log.path ?? "";
    for (const n of [1, 2, 3]) log.append(numbered(n));
    expect(numbersIn(log)).toEqual([1, "torn", 2, 3]);
    log.close();
  });

  it("warns once of it in a run, which goes on", async () => {
    let isFull = false;
    const write = (file: number, bytes: Uint8Array, at: number) => {
      if (isFull) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      return writeSync(file, bytes, at);
    };
    const session = await newSessionFile({ home, threadId: "abc", now }, write);
    const warnings: string[] = [];
    const result = await runAgent({
      prompt: "go",
      model: createScriptedClient(
        parseScript("steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]", "s.yaml"),
      ),
      sandbox: () => Promise.resolve(new MemorySandbox()),
      setting: {
        cwd: home,
        sandboxMode: "workspace-write",
        network: { kind: "none" },
        writableRoots: [],
        shell: "bash",
        timezone: "UTC",
      },
      session,
      onEvent(event) {
        if (event.kind === "call-started") isFull = true;
        if (event.kind === "warning") warnings.push(event.message);
      },
    });
    expect(result).toMatchObject({ status: "completed", lastMessage: "done" });
    expect(warnings).toEqual([expect.stringContaining("no space left on the device")]);
    expect(session.trouble).toMatch(/records are missing at its end/);
  });

  it("gives up the newest records when too many wait, and says how many", async () => {
    let isFull = false;
    const write = (file: number, bytes: Uint8Array, at: number) => {
      if (isFull) throw Object.assign(new Error("full"), { code: "ENOSPC" });
      return writeSync(file, bytes, at);
    };
    const log = await newSessionFile({ home, threadId: "abc", now }, write);
    log.append(numbered(0));
    isFull = true;
    for (let n = 1; n <= 6; n++)
      log.append({ type: "event_msg", payload: { n, ballast: "x".repeat(4 * 1024 * 1024) } });
    expect(log.trouble).toContain("6 records are missing");
    isFull = false;
    log.append(numbered(7));
    const records = linesOf(log).map((line) => JSON.parse(line));
    expect(records.map(({ payload }) => payload.n)).toEqual([0, 1, 2, 3, undefined]);
    expect(records.at(-1)).toMatchObject({ type: "brig.gap", payload: { lost_records: 4 } });
    expect(log.trouble).toBeNull();
    log.close();
  });

  it("says so when it was deleted, and does not come back", async () => {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append(numbered(1));
    rmSync(log.path ?? "");
    log.append(numbered(2));
    expect(log.trouble).toMatch(/was deleted while it was in use/);
    expect(existsSync(log.path ?? "")).toBe(false);
    log.close();
  });
});

describe("going on with a session file", () => {
  async function written(): Promise<string> {
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append(numbered(1));
    log.close();
    return log.path ?? "";
  }

  it("appends to what is there", async () => {
    const log = await continueSessionFile(await written(), { now });
    log.append(numbered(2));
    expect(numbersIn(log)).toEqual([1, 2]);
    log.close();
  });

  it("starts a new line after a torn one, and leaves that as it is", async () => {
    const path = await written();
    appendFileSync(path, '{"torn');
    const log = await continueSessionFile(path, { now });
    log.append(numbered(2));
    expect(linesOf(log)[1]).toBe('{"torn');
    expect(numbersIn(log)).toEqual([1, "torn", 2]);
    log.close();
  });

  it("takes no directory and no file that is missing, and leaves no claim", async () => {
    mkdirSync(join(home, "d"));
    for (const [name, reason] of [
      ["d", /is a directory|illegal operation/i],
      ["missing", /no such file/],
    ] as const)
      await expect(continueSessionFile(join(home, name), { now })).rejects.toThrow(reason);
    expect(readdirSync(home)).toEqual(["d"]);
  });

  it("is refused while another process writes it, which is named", async () => {
    const path = await written();
    const other = spawn(process.execPath, ["--import", "tsx", writer, "claim", path]);
    const [said] = await once(other.stdout, "data");
    expect(String(said)).toBe("mine\n");
    await expect(continueSessionFile(path, { now })).rejects.toMatchObject({
      code: "session.busy",
      message: `the session ${path.slice(dirname(path).length + 1)} is in use by process ${other.pid}`,
    });
    other.stdin.end();
    await once(other, "exit");
    const log = await continueSessionFile(path, { now });
    log.close();
    expect(readdirSync(dirname(path))).toHaveLength(1);
  });

  it("goes on after a process that was killed", async () => {
    const path = await written();
    const other = spawn(process.execPath, ["--import", "tsx", writer, "claim", path]);
    await once(other.stdout, "data");
    other.kill("SIGKILL");
    await once(other, "exit");
    const log = await continueSessionFile(path, { now });
    log.append(numbered(2));
    expect(numbersIn(log)).toEqual([1, 2]);
    log.close();
  });

  it("lets exactly one of many in that come at the same time", async () => {
    const claimant = await readCurrentProcess();
    const claimedAtOnce = async (path: string) => {
      const tries = Array.from({ length: 8 }, () => lockSessionFile(path, claimant));
      const claims = (await Promise.allSettled(tries)).flatMap((one) =>
        one.status === "fulfilled" ? [one.value] : [],
      );
      for (const claim of claims) claim.release();
      return claims.length;
    };
    // Those who are too late wait for a moment, and do so for all files at the same time.
    const paths = Array.from({ length: 20 }, (_, round) => join(home, `${round}.jsonl`));
    for (const path of paths) writeFileSync(path, "");
    const counts = await Promise.all(paths.map(claimedAtOnce));
    expect(counts).toEqual(paths.map(() => 1));
  });

  it("tells a process with a dead one's number from the dead one, and cannot tell of another machine", async () => {
    const path = await written();
    const here = await readCurrentProcess();
    const as = (owner: Partial<CurrentProcess["owner"]>): CurrentProcess => ({
      ...here,
      owner: { ...here.owner, ...owner },
    });
    await lockSessionFile(path, as({ startedAt: "1" }));
    expect(await holderOf(path, here.processes)).toBeNull();
    const elsewhere = await lockSessionFile(path, as({ host: "elsewhere", pid: 7 }));
    await expect(lockSessionFile(path, here)).rejects.toMatchObject({
      code: "session.busy",
      message: expect.stringContaining("by process 7 on elsewhere"),
      hint: expect.stringMatching(/remove .*\.lock/),
    });
    elsewhere.release();
    expect(await holderOf(path, here.processes)).toBeNull();
  });

  it("is claimed from its first record to its end, and no longer", async () => {
    const { processes, owner } = await readCurrentProcess();
    const log = await openSessionFile({ home, threadId: "abc", now });
    log.append(numbered(1));
    expect(await holderOf(log.path ?? "", processes)).toEqual(owner);
    log.close();
    expect(await holderOf(log.path ?? "", processes)).toBeNull();
  });
});
