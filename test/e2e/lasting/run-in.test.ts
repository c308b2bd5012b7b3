import { once } from "node:events";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endProcess, type LastingPlace, lastingPlace, upIn } from "../../support/lasting.js";
import { pngPicture } from "../../support/pictures.js";
import { callDone, messageDone, respond, startResponsesServer } from "../../support/responses-server.js";

const patience = { timeout: 30_000, interval: 100 };

interface SessionLine {
  type: string;
  payload: Record<string, unknown>;
}

/** A script that makes the calls, one after the other, and is done. */
async function play(place: LastingPlace, calls: readonly object[]): Promise<string> {
  const file = join(place.home, "..", "play.yaml");
  const steps = [...calls.map((call) => ({ calls: [call] })), { text: "done" }];
  await writeFile(file, JSON.stringify({ steps }));
  return file;
}

/** The lines of the session whose run has ended. Every one of them is whole. */
async function sessionOf({ stderr }: { stderr: string }): Promise<SessionLine[]> {
  const text = await readFile(/^session file (\/.*)$/m.exec(stderr)?.[1] ?? "", "utf8");
  expect(text.endsWith("\n")).toBe(true);
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

function outputsOf(lines: readonly SessionLine[]): string[] {
  return lines
    .filter(({ payload }) => /_output$/.test(`${payload.type}`))
    .map(({ payload }) => JSON.stringify(payload.output));
}

/** What differs from run to run: times, and the names of sessions of commands. */
function withoutChance(text: string): string {
  return text
    .replace(/Wall time: [\d.]+ seconds/g, "Wall time")
    .replace(/after \d+ milliseconds/g, "after some time")
    .replace(/Chunk ID: [0-9a-f]+/g, "Chunk ID")
    .replace(/duration_seconds\\":[\d.]+/g, "duration_seconds")
    .replace(/session ID \d+/g, "session ID");
}

/** A server on this machine's loopback. */
async function plainServer() {
  const paths: string[] = [];
  const server = createServer(({ url = "" }, response) => {
    paths.push(url);
    response.end("answer\n");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { port, paths, [Symbol.asyncDispose]: async () => void server.close() };
}

/** Calls of each kind of tool, with what is hard to pass on: bytes that are no text, holes, links, terminals, failures. */
const calls = (workspace: string): object[] => [
  {
    shell: { command: ["sh", "-c", "pwd; printf 'out\\n'; printf 'err\\n' >&2; printf '\\377\\n'; exit 3"] },
  },
  { shell: { command: ["sh", "-c", "echo $FOO; unset x; sleep 30"], timeout_ms: 3000 } },
  { shell: { command: ["no-such-program"] } },
  { shell_command: { command: "i=0; while [ $i -lt 300 ]; do echo $i; echo e$i >&2; i=$((i+1)); done" } },
  { exec_command: { cmd: "read line; echo got $line; stty size", tty: true, yield_time_ms: 250 } },
  {
    shell: {
      command: [
        "sh",
        "-c",
        "printf 'a\\nb\\n' > a.txt; mkdir -p dir/sub; ln -s /etc/hostname link; mkfifo fifo",
      ],
    },
  },
  { shell: { command: ["sh", "-c", "truncate -s 40M holes; printf '\\nat the end\\n' >> holes"] } },
  {
    shell: {
      command: ["python3", "-c", "import os; [open(b'dir/\\xff%d' % n, 'w').close() for n in range(300)]"],
      timeout_ms: 120_000,
    },
  },
  { read_file: { file_path: join(workspace, "a.txt") } },
  { read_file: { file_path: join(workspace, "missing") } },
  { read_file: { file_path: join(workspace, "fifo") } },
  { list_dir: { dir_path: workspace, depth: 2, limit: 20 } },
  { list_dir: { dir_path: join(workspace, "dir"), offset: 280, limit: 30 } },
  { read_file: { file_path: join(workspace, "holes"), offset: 2 } },
  { grep_files: { pattern: "^b", path: workspace } },
  {
    apply_patch:
      "*** Begin Patch\n*** Update File: a.txt\n@@\n a\n-b\n+c\n*** Add File: new/deep/b.txt\n+new\n*** Update File: a.txt\n*** Move to: moved.txt\n@@\n-a\n+d\n*** End Patch",
  },
  { apply_patch: "*** Begin Patch\n*** Delete File: not-there.txt\n*** End Patch" },
  { apply_patch: "*** Begin Patch\n*** Add File: /etc/forbidden/x\n+no\n*** End Patch" },
  { view_image: { path: join(workspace, "picture.png") } },
  { view_image: { path: join(workspace, "a-file-that-is-missing.png") } },
  { js_repl: "console.log(1 + 1)" },
  { update_plan: { plan: [{ step: "one", status: "completed" }] } },
  {
    shell: {
      command: [
        "sh",
        "-c",
        "find . -path ./dir -prune -o -type f -print | sort; cat moved.txt new/deep/b.txt",
      ],
    },
  },
];

describe("brig run --in", () => {
  it("gives a model a lasting sandbox in which all tools answer as in one of its own", async () => {
    const place = await lastingPlace();
    const { workspace } = place;
    const script = await play(place, calls(workspace));
    const prepare = async () =>
      await writeFile(join(workspace, "picture.png"), pngPicture({ width: 40, height: 30 }));
    await prepare();
    const flags = ["--script", script, "-e", "FOO=bar", "-c", "tools.js_repl=true", "go"];
    const own = await place.start(["run", ...flags]);
    expect([own.exitCode, own.stdout]).toEqual([0, "done\n"]);
    await rm(workspace, { recursive: true });
    await mkdir(workspace);
    await prepare();
    await upIn(place, "--name", "web");
    const within = await place.start(["run", "--in", "web", ...flags]);
    expect([within.exitCode, within.stdout]).toEqual([0, "done\n"]);
    const [first, second] = [await sessionOf(own), await sessionOf(within)];
    const [expected, actual] = [outputsOf(first), outputsOf(second)].map((all) => all.map(withoutChance));
    expect(actual).toHaveLength(calls(workspace).length);
    expect(actual).toEqual(expected);
    expect(actual?.join("\n")).toContain("at the end");
    // The command that still waits for a line is ended with the session, and how it ends is told.
    for (const { stderr } of [own, within]) expect(stderr).toMatch(/✗ exit 143/);
    const settings = (lines: SessionLine[]) =>
      lines.find(({ type }) => type === "turn_context")?.payload.sandbox_policy;
    expect(settings(second)).toEqual(settings(first));
    expect(second.find(({ type }) => type === "brig.sandbox")?.payload).toMatchObject({
      id: JSON.parse((await place.run("ps", "--json")).stdout)[0].id,
      image: "brig/base",
      proof: { policy: "workspace-write" },
    });
    // It stays, with what the model has left.
    expect((await place.run("exec", "--in", "web", "--", "cat", "moved.txt")).stdout).toBe("d\nc\n");
  }, 300_000);

  it("asks the model that is configured, which is told what the sandbox may do, and prints events with --json", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web", "-s", "read-only");
    await using server = await startResponsesServer([
      respond(callDone("call_1", "shell", { command: ["sh", "-c", "id -u; touch x"] })),
      respond(messageDone("It cannot be written.")),
    ]);
    const done = await place.start(["run", "--in", "web", "--json", "look"], {
      env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key-0123456789" },
    });
    expect([done.exitCode, done.stderr]).toEqual([0, ""]);
    const events = done.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(events.at(-1)).toMatchObject({ type: "turn.completed" });
    const body = JSON.stringify(server.requests[1]?.body);
    expect(body).toContain("Read-only file system");
    expect(body).toContain("`sandbox_mode` is `read-only`");
  });

  it("refuses by name what would need another sandbox, and sandboxes that are not there", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web");
    const script = ["--script", await play(place, [])];
    for (const flag of [
      ["-s", "read-only"],
      ["--network", "full"],
      ["--workspace", "overlay"],
      ["--container-image", "brig/base"],
      ["--memory", "1g"],
      ["--publish", "8080"],
      ["--keep"],
    ]) {
      const { exitCode, stderr } = await place.run("run", "--in", "web", ...script, ...flag, "go");
      expect([exitCode, stderr], flag.join(" ")).toEqual([2, expect.stringContaining("--in and --")]);
    }
    const unknown = await place.run("run", "--in", "nope", ...script, "go");
    expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('called "nope"')]);
    await place.run("stop", "web");
    const stopped = await place.run("run", "--in", "web", ...script, "go");
    expect([stopped.exitCode, stopped.stderr]).toEqual([125, expect.stringContaining("web")]);
  });

  it("begins where -C says, and asks for approval of nothing that would need another sandbox", async () => {
    const place = await lastingPlace();
    await mkdir(join(place.workspace, "dir"));
    await upIn(place, "--name", "web");
    const asking = { sandbox_permissions: "require_escalated", justification: "May I?" };
    const script = await play(place, [
      { shell: { command: ["pwd"] } },
      { shell: { command: ["touch", "/etc/x"], ...asking } },
    ]);
    const flags = ["--script", script, "-a", "on-request", "-C", "dir"];
    const done = await place.start(["run", "--in", "web", ...flags, "go"]);
    expect(done.exitCode).toBe(0);
    const [where, asked] = outputsOf(await sessionOf(done));
    expect(where).toContain(join(place.workspace, "dir"));
    expect(asked).not.toContain('exit_code\\":0');
    expect((await place.run("ps", "--json")).stdout.match(/"id"/g)).toHaveLength(1);
  });

  it("hides the sandbox's secrets in what tools return, also where a file has them", async () => {
    const place = await lastingPlace();
    const secret = "sk-0123456789-abcdefghijk";
    await writeFile(join(place.workspace, "answer.txt"), `the key is ${secret}\n`);
    const flags = ["--network", "allowlist:example.com", "--secret", "TEST_KEY=example.com"];
    const up = await place.start(["up", "--name", "web", ...flags], { env: { TEST_KEY: secret } });
    expect(up.exitCode).toBe(0);
    const script = await play(place, [
      { read_file: { file_path: join(place.workspace, "answer.txt") } },
      { shell: { command: ["cat", "answer.txt"] } },
    ]);
    const done = await place.start(["run", "--in", "web", "--script", script, "go"]);
    const lines = await sessionOf(done);
    expect(outputsOf(lines).join("\n")).toMatch(/the key is \*{10,}[\s\S]*the key is \*{10,}/);
    expect(JSON.stringify(lines) + done.stderr).not.toContain(secret);
  });

  it("records what its own calls try to reach, and not what others in the sandbox do", async () => {
    const place = await lastingPlace();
    await using server = await plainServer();
    const network = `allowlist:host.internal:${server.port}`;
    await upIn(place, "--name", "web", "--network", network);
    const curl = (path: string, host = `host.internal:${server.port}`) => [
      ...["curl", "-sS", "-m", "20", `http://${host}/${path}`],
    ];
    await place.run("exec", "--in", "web", "--", ...curl("of-another-before"));
    const script = await play(place, [
      { shell: { command: curl("own") } },
      {
        shell: {
          command: ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.1; done"],
          timeout_ms: 120_000,
        },
      },
      { shell: { command: curl("refused", "refused.invalid") } },
    ]);
    const running = place.start(["run", "--in", "web", "--script", script, "go"]);
    await expect.poll(async () => await readdir(place.workspace), patience).toContain("begun");
    await place.run("exec", "--in", "web", "--", ...curl("of-another"));
    await writeFile(join(place.workspace, "go"), "");
    const done = await running;
    expect([done.exitCode, done.stdout]).toEqual([0, "done\n"]);
    const lines = await sessionOf(done);
    const attempts = lines.filter(({ type }) => type === "brig.egress_attempt").map(({ payload }) => payload);
    expect(attempts).toMatchObject([
      { call_id: "call_1_1", path: "/own", outcome: "allowed" },
      { call_id: "call_3_1", path: "/refused", outcome: "denied", reason: "no-rule" },
    ]);
    expect(server.paths).toEqual(expect.arrayContaining(["/own", "/of-another", "/of-another-before"]));
  });

  it("is killed without the sandbox, in which none of its commands goes on", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web");
    const script = await play(place, [{ exec_command: { cmd: "sleep 4321", yield_time_ms: 30_000 } }]);
    const running = place.start(["run", "--in", "web", "--script", script, "go"]);
    const sleeping = async () =>
      (await place.run("exec", "--in", "web", "--", "pgrep", "-fx", "sleep 4321")).exitCode;
    await expect.poll(sleeping, patience).toBe(0);
    running.kill("SIGKILL");
    await running;
    await expect.poll(sleeping, patience).toBe(1);
    expect((await place.run("exec", "--in", "web", "--", "echo", "there")).stdout).toBe("there\n");
  });

  it("goes on with the next owner, if the one that it began with is killed", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web");
    const waits = "echo kept > /tmp/file; touch begun; until [ -e go ]; do sleep 0.1; done; cat /tmp/file";
    const script = await play(place, [
      { exec_command: { cmd: waits, yield_time_ms: 30_000 } },
      { shell: { command: ["wc", "-c", "/tmp/file"] } },
    ]);
    const running = place.start(["run", "--in", "web", "--script", script, "go"]);
    await expect.poll(async () => await readdir(place.workspace), patience).toContain("begun");
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    await writeFile(join(place.workspace, "go"), "");
    const done = await running;
    expect([done.exitCode, done.stdout]).toEqual([0, "done\n"]);
    const outputs = outputsOf(await sessionOf(done));
    expect(outputs.map((output) => /kept|5 \/tmp\/file/.exec(output)?.[0])).toEqual(["kept", "5 /tmp/file"]);
    expect((await place.run("rm", "web")).exitCode).toBe(0);
  });

  it("is a conversation at a terminal, which leaves the sandbox as it is", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web");
    const script = join(place.home, "..", "play.yaml");
    const steps = [
      { calls: [{ exec_command: { cmd: "echo said in the sandbox > said; cat said" } }] },
      { text: "done" },
      { calls: [{ exec_command: { cmd: "test -s said && echo said before" } }] },
      { text: "done again" },
    ];
    await writeFile(script, JSON.stringify({ steps }));
    const terminal = await place.terminal(["--in", "web", "--script", script]);
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("begin\r");
    await terminal.waitForScreen(/│ said in the sandbox\n {2}✓ exit 0[\s\S]*● done[\s\S]*^›\s*$/m);
    // The next owner goes on with the sandbox, and the conversation with it.
    await endProcess((await place.ownerPid()) ?? 0, "SIGKILL");
    await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
    terminal.type("again\r");
    await terminal.waitForScreen(/› again[\s\S]*│ said before[\s\S]*● done again[\s\S]*^›\s*$/m);
    terminal.type("/mode read-only\r");
    await terminal.waitForScreen(/works in the sandbox web, whose mode cannot change/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect((await place.run("exec", "--in", "web", "--", "cat", "said")).stdout).toBe(
      "said in the sandbox\n",
    );
    expect((await place.run("rm", "web")).exitCode).toBe(0);
  });

  it("is a conversation whose own commands, new and resumed sessions and reviews are about the same sandbox", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web");
    const findings = { findings: [], overall_correctness: "patch is correct", overall_confidence_score: 1 };
    await using server = await startResponsesServer(({ body }) => {
      const input = JSON.stringify(body.input);
      if (!JSON.stringify(body.text ?? {}).includes("findings"))
        return respond(messageDone(`Heard of ${/amber/.test(input) ? "amber" : "nothing"}.`));
      const output = /Read-only file system/.exec(input)?.[0];
      const look = callDone("look", "exec_command", { cmd: "cat mark; touch mark" });
      return respond(
        input.includes("function_call_output")
          ? messageDone(JSON.stringify({ ...findings, overall_explanation: `It says: ${output}.` }))
          : look,
      );
    });
    const env = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: "key-0123456789" };
    const terminal = await place.terminal(["--in", "web"], env);
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("! echo kept | tee /tmp/mark mark\r");
    await terminal.waitForScreen(/│ kept\n {2}✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("! sleep 600\r");
    await terminal.waitForScreen(/\$ sleep 600\n {2}… \d+ s/);
    terminal.type("\x1b");
    await terminal.waitForScreen(/✗ stopped[\s\S]*\n›\s*\n(?![\s\S]*◦ )/);
    terminal.type("the word is amber\r");
    await terminal.waitForScreen(/● Heard of amber\./);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/│ kept\n[\s\S]*● It says: Read-only file system\./);
    terminal.type("/new\r");
    await terminal.waitForScreen(/to continue: brig resume[\s\S]*brig \d[\s\S]*\n›\s*\n/);
    terminal.type("! cat /tmp/mark; pgrep -fx 'sleep 600' || echo ended\r");
    await terminal.waitForScreen(/│ kept\n {2}│ ended\n {2}✓ exit 0[\s\S]*\n›\s*\n/);
    terminal.type("what is the word\r");
    await terminal.waitForScreen(/● Heard of nothing\./);
    terminal.type("/resume\r");
    await terminal.waitForScreen(/Which session[\s\S]*› +now +work +the word is amber\n/);
    terminal.type("\r");
    await terminal.waitForScreen(/resumed[\s\S]*› the word is amber[\s\S]*\n›\s*\n/);
    terminal.type("! rm /tmp/mark && echo gone from web\r");
    await terminal.waitForScreen(/│ gone from web\n[\s\S]*\n›\s*\n/);
    terminal.type("and now\r");
    await terminal.waitForScreen(/› and now[\s\S]*● Heard of amber\./);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
    const left = await place.run("exec", "--in", "web", "--", "ls", "/tmp/mark", "mark");
    expect(left.stdout).toBe("mark\n");
    expect((await place.run("ps", "--json")).stdout.match(/"id"/g)).toHaveLength(1);
  });

  it("is a conversation that refuses a review where only that sandbox has the files", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "web", "--workspace", "overlay");
    const script = await play(place, []);
    const terminal = await place.terminal(["--in", "web", "--script", script]);
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("! echo of the copy > file; cat file\r");
    await terminal.waitForScreen(/│ of the copy\n[\s\S]*\n›\s*\n/);
    terminal.type("/review my change\r");
    await terminal.waitForScreen(/✗ [^\n]*the sandbox web[\s\S]*\n›\s*\n/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
  });
});
