import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cp, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { packageRoot } from "../../src/package-root.js";
import { brig, containersOf } from "../support/cli.js";
import { brigHere, type EndedHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";

/** A session in which the third of five changes breaks the sum. */
const breaking = [
  "echo one > a",
  "echo two > b",
  "sed -i 's/+/-/' sum.sh; echo also > c",
  "cat a",
  "mkdir d; echo three > d/e",
  "rm a",
];
const test = ["sh", "-c", 'test "$(sh sum.sh 1 2)" = 3'];

let folder: TemporaryDirectory;
let count = 0;

beforeAll(async () => {
  folder = await temporaryDirectory();
});

afterAll(() => folder[Symbol.asyncDispose]());

interface Place {
  cwd: string;
  env: { BRIG_HOME: string };
  /** Runs a session with this script. Returns its id. */
  record(script: object, ...flags: string[]): Promise<string>;
  run(...args: string[]): Promise<EndedHere>;
  /** The same, as a process. */
  start(...args: string[]): ReturnType<typeof brig>;
}

async function place(): Promise<Place> {
  const root = join(folder.path, String(++count));
  const cwd = join(root, "work");
  const env = { BRIG_HOME: join(root, "home") };
  await mkdir(cwd, { recursive: true });
  writeFileSync(join(cwd, "sum.sh"), "echo $(( $1 + $2 ))\n");
  const run = (...args: string[]) => brigHere(args, { cwd, env });
  return {
    cwd,
    env,
    run,
    start: (...args) => brig(args, { cwd, env }),
    record: async (script, ...flags) => {
      const file = join(root, "script.yaml");
      writeFileSync(file, JSON.stringify(script));
      const { exitCode, stderr } = await run(
        "run",
        "--workspace",
        "overlay",
        "--script",
        file,
        ...flags,
        "go",
      );
      expect(exitCode, stderr).toBe(0);
      const sessions: { id: string; parentId: string | null }[] = JSON.parse(
        (await run("sessions", "--json")).stdout,
      );
      return sessions.find(({ parentId }) => parentId === null)?.id ?? "";
    },
  };
}

const calling = (...scripts: string[]) => ({
  steps: [...scripts.map((cmd) => ({ calls: [{ exec_command: { cmd } }] })), { text: "done" }],
});

describe("brig bisect", () => {
  let session: Place;
  let id = "";

  beforeAll(async () => {
    session = await place();
    id = await session.record(calling(...breaking));
  });

  const bisect = (...args: string[]) => session.start("bisect", id, ...args);

  async function expectNothingLeft(pid: number | undefined): Promise<void> {
    expect(await containersOf(pid)).toEqual([]);
    expect(await (await testEngine()).listVolumes([`brig.workspace=${session.cwd}`])).toEqual([]);
    expect(readdirSync(session.cwd)).toEqual(["sum.sh"]);
    expect(readFileSync(join(session.cwd, "sum.sh"), "utf8")).toContain("+");
    expect(readdirSync(join(session.env.BRIG_HOME, "snapshots"))).toHaveLength(1);
  }

  it("names the call that broke it, what it changed, and how to go on", async () => {
    const run = bisect("--", ...test);
    const { exitCode, stdout, stderr } = await run;
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(
      [
        "it fails since call 3 of 5 (step 7)",
        "  call     $ sed -i 's/+/-/' sum.sh; echo also > c",
        "  changed  c, sum.sh",
        `to go on from before it: brig resume ${id} --at 6`,
        "",
      ].join("\n"),
    );
    const lines = stderr.replaceAll(/exit (\d), [\d.]+ m?s/g, "exit $1").split("\n");
    expect(lines).toEqual([
      `brig: 5 calls changed ${session.cwd}; about 5 tries are needed`,
      "brig: at the start it passes: exit 0",
      "brig: after call 5 of 5 (step 10) it fails: exit 1",
      "brig: after call 2 of 5 (step 6) it passes: exit 0",
      "brig: after call 3 of 5 (step 7) it fails: exit 1",
      "",
    ]);
    await expectNothingLeft(run.pid);
  });

  it("finds it in the last session of the directory, and says it in JSON", async () => {
    const { stdout } = await session.run("bisect", "--last", "--json", "--", ...test);
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({
      session: id,
      outcome: "found",
      lastGood: { point: 2, step: 6, kind: "call" },
      firstBad: {
        point: 3,
        step: 7,
        agent: null,
        call: { name: "exec_command" },
        count: 2,
        changes: [
          { path: "c", change: "added" },
          { path: "sum.sh", change: "modified" },
        ],
      },
      unjudged: [],
      resumeAt: 6,
    });
    expect(found.tries).toHaveLength(4);
    expect(found.tries[0]).toMatchObject({ point: 0, kind: "start", verdict: "good", exitCode: 0 });
  });

  it("searches for the first change of anything that a command can see", async () => {
    const first = await bisect("--", "test", "!", "-e", "a", "-a", "!", "-e", "b");
    expect(first.stdout).toMatch(/^it fails since call 1 of 5 \(step 5\)\n/);
    const { stdout } = await bisect("--", "test", "!", "-e", "d");
    expect(stdout).toMatch(/^it fails since call 4 of 5 \(step 9\)\n.*\n {2}changed {2}d, d\/e\n.*--at 8\n$/);
  });

  it("says so where the command fails from the start or passes to the end, with what it printed", async () => {
    const atStart = await bisect("--", "sh", "-c", "echo why; exit 3");
    expect(atStart).toMatchObject({ exitCode: 1, stdout: "" });
    expect(atStart.stderr).toContain(
      "fails at the start already, so no call of the session broke it\n  │ why\nhint: ",
    );
    const missing = await bisect("--", "no-such-program");
    expect(missing.stderr).toMatch(/at the start it fails: exit 127/);
    const atEnd = await bisect("--json", "--", "true");
    expect(atEnd.exitCode).toBe(1);
    expect(JSON.parse(atEnd.stdout)).toMatchObject({ outcome: "passes-at-end", tries: [{}, {}] });
    expect(atEnd.stderr).toContain("the command passes at the end, so there is nothing to find");
  });

  it("names all calls that may have broken it, where the command could not judge what is between", async () => {
    const { exitCode, stdout } = await bisect(
      "--",
      "sh",
      "-c",
      `test -e b -a ! -e d && exit 125; ${test[2]}`,
    );
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /^it fails since one of these; about the states in between the command could not say anything\n {2}call 2 of 5 \(step 6\)\n[\s\S]* {2}call 3 of 5 [\s\S]* {2}call 4 of 5 [\s\S]*--at 5\n$/,
    );
    const never = await bisect("--", "sh", "-c", "exit 125");
    expect(never).toMatchObject({ exitCode: 1, stdout: "" });
    expect(never.stderr).toContain("the command must pass or fail at the start and at the end");
  });

  it("ends where a signal ends the command, and takes a try that lasts too long for a failed one", async () => {
    const killed = await bisect("--", "sh", "-c", "test ! -e d || kill -KILL $$");
    expect(killed).toMatchObject({ exitCode: 1, stdout: "" });
    expect(killed.stderr).toMatch(
      /after call 5 of 5 .step 10. it was ended: exit 137[\s\S]*ended by a signal, which says nothing/,
    );
    const late = await bisect("--timeout", "2", "--", "sh", "-c", "test ! -e d || sleep 600");
    expect(late.stderr).toMatch(/after call 5 of 5 .step 10. it fails: exit 124, the time was up/);
    expect(late.stdout).toMatch(/^it fails since call 4 of 5 \(step 9\)\n/);
  });

  it("shows what the command prints only if that is asked for", async () => {
    const said = ["sh", "-c", `echo "said $(ls | wc -l)"; ${test[2]}`];
    expect((await bisect("--", ...said)).stderr).not.toContain("said");
    const { stdout, stderr } = await bisect("-v", "--", ...said);
    expect(stderr).toMatch(/^said 1\nbrig: at the start it passes/m);
    expect(stdout).not.toContain("said");
  });

  it("leaves nothing when it is interrupted", async () => {
    const run = bisect("-v", "--", "sh", "-c", "echo started; sleep 600");
    run.stderr?.on("data", (chunk) => {
      if (String(chunk).includes("started")) run.kill("SIGINT");
    });
    const { exitCode, stderr } = await run;
    expect(exitCode).toBe(130);
    expect(stderr).toContain("interrupted by SIGINT");
    await expectNothingLeft(run.pid);
  });

  it.each([
    ["no session", ["bisect"], /no session given/],
    ["no command", ["bisect", "--last"], /no command given/],
    ["an unknown session", ["bisect", "ffff", "--", "true"], /there is no session "ffff"/],
    ["a wrong mode", ["bisect", "--last", "-s", "none", "--", "true"], /"none" is not a sandbox mode/],
    ["a wrong time", ["bisect", "--last", "--timeout", "soon", "--", "true"], /It must be seconds/],
  ])("refuses %s", async (_name, args, message) => {
    const { exitCode, stderr } = await session.run(...args);
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe("brig bisect of other sessions", () => {
  it("is shown by an example, whose other changes can be applied without the one that broke the test", async () => {
    const root = join(folder.path, "example");
    await cp(join(packageRoot, "examples/bisect"), root, { recursive: true });
    const cwd = join(root, "project");
    const run = (...args: string[]) => brigHere(args, { cwd, env: { BRIG_HOME: join(root, "home") } });
    const done = await run("run", "--workspace", "overlay", "--script", "../script.yaml", "tidy up");
    expect(done).toMatchObject({ exitCode: 0, stdout: "The project is tidy now.\n" });
    const { stdout } = await run("bisect", "--last", "--", "npm", "test");
    expect(stdout).toMatch(
      /^it fails since call 3 of 5 \(step 7\)\n.*apply_patch.*\n {2}changed {2}prices\.js\n.*--at 6\n$/,
    );
    const applied = await run("apply", "docs", "package.json");
    expect(applied.stdout).toBe("docs\ndocs/prices.md\npackage.json\n");
    expect(readFileSync(join(cwd, "prices.js"), "utf8")).toContain("Math.round");
  });

  it("tries two states where there are only two", async () => {
    const { record, run } = await place();
    await record(calling("sed -i 's/+/-/' sum.sh"));
    const { stdout, stderr } = await run("bisect", "--last", "--", ...test);
    expect(stderr).toMatch(/^brig: 1 call changed .*; about 2 tries/);
    expect(stdout).toMatch(/^it fails since call 1 of 1 \(step 5\)\n/);
  });

  it("names the agent whose call broke it", async () => {
    const { record, run } = await place();
    await record({
      steps: [
        { calls: [{ exec_command: { cmd: "echo one > a" } }] },
        { calls: [{ spawn_agent: { message: "break it" } }] },
        {
          expect: [{ matches: '"agent_id":"(?<id>[^"]+)"' }],
          calls: [{ wait_agent: { targets: [`$${"{id}"}`] } }],
        },
        { calls: [{ exec_command: { cmd: "echo two > b" } }] },
        { text: "done" },
      ],
      agents: [calling("echo mine > m", "sed -i 's/+/-/' sum.sh")],
    });
    const { stdout } = await run("bisect", "--last", "--", ...test);
    expect(stdout).toMatch(
      /^it fails since call 3 of 4 \(step \d+ of the agent Ada\)\n {2}call {5}\$ sed -i .*\n {2}changed {2}sum\.sh\n/,
    );
    expect(stdout).toMatch(/--at 5\n$/);
  });

  it("says what it needs where no states were kept, and where they were removed", async () => {
    const { record, run, env } = await place();
    await record(calling("echo one > a"), "--workspace", "bind");
    const bound = await run("bisect", "--last", "--", "true");
    expect(bound).toMatchObject({ exitCode: 2, stdout: "" });
    expect(bound.stderr).toMatch(
      /no states of the session's workspace were kept\nhint: .*--workspace overlay/,
    );
    await record(calling("ls"));
    expect((await run("bisect", "--last", "--", "true")).stderr).toMatch(
      /no call of the session has changed/,
    );
    await record(calling("echo two > b"));
    rmSync(join(env.BRIG_HOME, "snapshots"), { recursive: true });
    const gone = await run("bisect", "--last", "--", "true");
    expect(gone.exitCode).toBe(2);
    expect(gone.stderr).toMatch(/the states of the session's workspace have been removed/);
  });

  it("does not believe what a session file says, and shows none of its control sequences", async () => {
    const { record, run, env, cwd } = await place();
    await record(calling("sed -i 's/+/-/' sum.sh; echo '\x1b]0;title\x07'"));
    const [{ path }] = JSON.parse((await run("sessions", "--json")).stdout) as [{ path: string }];
    const lie = (type: string, payload: object) =>
      appendFileSync(path, `${JSON.stringify({ timestamp: "", type, payload })}\n`);
    for (const snapshot of ["../../sessions", "/etc", "x".repeat(199), ""])
      lie("brig.sandbox", { id: "a", snapshot, image: "no/such:image\x1b[2J" });
    lie("brig.sandbox", { id: "a", snapshot: 7 });
    lie("brig.restore_point", { call_id: "none", snapshot: "..", point: 1e9, count: -1, changes: [] });
    const { exitCode, stdout, stderr } = await run(
      "bisect",
      "--last",
      "--container-image",
      "brig/base",
      "--",
      ...test,
    );
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toMatch(/^it fails since call 1 of 1 \(step 5\)\n/);
    expect(stdout + stderr).not.toMatch(/(?!\n)\p{Cc}/u);
    expect(existsSync(join(cwd, "a"))).toBe(false);
    expect(readdirSync(join(env.BRIG_HOME, "snapshots"))).toHaveLength(1);
  });
});
