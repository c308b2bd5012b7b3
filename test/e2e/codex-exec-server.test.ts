import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { packTar } from "../../src/sandbox/docker/calls/tar.js";
import { brig, program } from "../support/cli.js";
import { testEngine } from "../support/engine.js";
import {
  type CodexResult,
  type CodexTurn,
  realCodex,
  runRealCodex,
  whyNoCodex,
} from "../support/real-codex.js";
import { callDone, type ReceivedRequest } from "../support/responses-server.js";
import { testRuntime } from "../support/runtime-differences.js";
import { type TemporaryDirectory, temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { gif } from "../unit/tools/picture/pictures.js";

type Mode = "workspace-write" | "read-only" | "danger-full-access";

interface Scenario {
  title: string;
  turns: CodexTurn[];
}

let nextCall = 1;
const call = (name: string, args: object) => callDone(`call_${nextCall++}`, name, args);
const run =
  (cmd: string, more: object = {}): CodexTurn =>
  () => [call("exec_command", { cmd, login: false, shell: "/bin/bash", ...more })];
const patch = (text: string) => run(`apply_patch <<'EOF'\n*** Begin Patch\n${text}\n*** End Patch\nEOF`);
const image =
  (path: string): CodexTurn =>
  () => [call("view_image", { path })];
/** Writes to the session that the turn before has opened. */
const type =
  (chars: string, more: object = {}): CodexTurn =>
  (request) => [call("write_stdin", { session_id: sessionOf(request), chars, yield_time_ms: 1500, ...more })];

function sessionOf(request: ReceivedRequest): number {
  const ids = outputs(request).flatMap((output) => /session ID ([0-9]+)/.exec(output)?.[1] ?? []);
  return Number(ids.at(-1));
}

/** Brig protects one name more than Codex does, with an empty directory of that name. */
const list = "ls -A --ignore=.brig";

/** Listens on this machine's loopback, which no sandbox without a network reaches. */
const listener = createServer((socket) => socket.end());
const connecting = (server: typeof listener) =>
  `(echo > /dev/tcp/127.0.0.1/${(server.address() as AddressInfo).port}) 2> /dev/null || echo none`;

const scenarios: Record<Mode, Scenario[]> = {
  "workspace-write": [
    { title: "output and an exit code", turns: [run("echo out; exit 3")] },
    { title: "standard error", turns: [run("echo err >&2; false")] },
    { title: "bytes that are no text", turns: [run("printf 'é\\xff\\n'")] },
    { title: "the working directory", turns: [run(`pwd; ${list}`)] },
    { title: "another working directory", turns: [run("pwd; cat b", { workdir: "sub" })] },
    { title: "a working directory that there is not", turns: [run("true", { workdir: "/no/such" })] },
    { title: "a write outside of the workspace", turns: [run("touch /etc/x")] },
    // The order of the texts from two pipes may vary.
    { title: "writes to protected names", turns: [run(`exec 2>&1; touch .git/x; mkdir .codex; ${list}`)] },
    { title: "the host's loopback", turns: [(request) => run(connecting(listener))(request)] },
    { title: "an unknown command", turns: [run("no-such-command")] },
    { title: "a command that kills itself", turns: [run("kill -9 $$")] },
    {
      title: "what Codex sets in the environment",
      turns: [run("echo $CODEX_CI $TERM $PAGER $NO_COLOR $LC_ALL")],
    },
    {
      title: "a terminal that is written to",
      turns: [run("cat; echo bye", { tty: true, yield_time_ms: 500 }), type("hey\n\u0004")],
    },
    { title: "a terminal's size", turns: [run("stty size", { tty: true })] },
    {
      title: "a command that is waited for",
      turns: [run("sleep 1; echo slept", { yield_time_ms: 250 }), type("", { yield_time_ms: 5000 })],
    },
    {
      title: "input for a command that takes none",
      turns: [run("sleep 2", { yield_time_ms: 250 }), type("x"), type("", { yield_time_ms: 5000 })],
    },
    // Waits before it ends, because on a busy machine Codex loses what it has not read yet when a command ends in its local environment.
    { title: "a flood of output", turns: [run("seq 1 200000; sleep 2", { max_output_tokens: 200 })] },
    {
      title: "a patch that adds and changes",
      turns: [patch("*** Add File: n/new\n+one\n*** Update File: a\n@@\n-hello\n+bye")],
    },
    {
      title: "a patch that moves",
      turns: [patch("*** Update File: AGENTS.md\n*** Move to: moved/B.md\n@@\n-agents\n+moved")],
    },
    { title: "a patch that deletes", turns: [patch("*** Delete File: gone")] },
    { title: "a patch of a missing file", turns: [patch("*** Update File: none\n@@\n-a\n+b")] },
    { title: "a patch outside of the workspace", turns: [patch("*** Add File: /etc/x\n+x")] },
    { title: "a patch of a protected name", turns: [patch("*** Add File: .git/x\n+x")] },
    { title: "a picture", turns: [image("p.gif")] },
    { title: "a picture that is missing", turns: [image("none.png")] },
    { title: "a picture that is a directory", turns: [image("sub")] },
  ],
  "read-only": [
    { title: "a file that is read", turns: [run("cat a")] },
    { title: "a file that is written", turns: [run("touch q")] },
    { title: "a file that is written outside of the workspace", turns: [run("touch /run/q /var/tmp/q")] },
    { title: "a patch", turns: [patch("*** Update File: a\n@@\n-hello\n+bye")] },
  ],
  "danger-full-access": [
    { title: "a write to a protected name", turns: [run("mkdir .git; echo x > .git/config; ls -A")] },
    { title: "a patch", turns: [patch("*** Add File: .codex/x\n+x")] },
  ],
};

interface Sides {
  outputs: string[][];
  tree: Record<string, string>;
  result: CodexResult;
}

const modes = Object.keys(scenarios) as Mode[];
let directory: TemporaryDirectory;
const local = new Map<Mode, Sides>();
const ours = new Map<Mode, Sides>();
const NO_LOCAL_SANDBOX = "Codex's own sandbox does not run on this machine";
let hasLocalSandbox = false;

const title = withReason("the real Codex, with brig as its environment", whyNoCodex);
describe.skipIf(realCodex === null)(title, () => {
  beforeAll(async () => {
    directory = await temporaryDirectory();
    await once(listener.listen(0, "127.0.0.1"), "listening");
    hasLocalSandbox = await canRunLocally();
    for (const mode of hasLocalSandbox ? modes : []) {
      local.set(mode, await play(mode, { name: `local-${mode}`, environments: null }));
      ours.set(mode, await play(mode, { name: `brig-${mode}`, environments: environments() }));
    }
  });
  afterAll(async () => {
    listener.close();
    await directory[Symbol.asyncDispose]();
  });

  for (const mode of modes) {
    it.for(scenarios[mode].map(({ title }, index) => [title, index] as const))(
      `${mode}: %s is the same as in its local environment`,
      ([, index], { skip }) => {
        skip(!hasLocalSandbox, NO_LOCAL_SANDBOX);
        expect(ours.get(mode)?.outputs[index]).toEqual(local.get(mode)?.outputs[index]);
        expect(ours.get(mode)?.outputs[index]?.join("")).not.toBe("");
      },
    );

    it(`${mode}: the workspace is the same afterwards`, ({ skip }) => {
      skip(!hasLocalSandbox, NO_LOCAL_SANDBOX);
      expect(ours.get(mode)?.tree).toEqual(local.get(mode)?.tree);
    });

    it(`${mode}: AGENTS.md is found`, ({ skip }) => {
      skip(!hasLocalSandbox, NO_LOCAL_SANDBOX);
      for (const side of [local, ours])
        expect(JSON.stringify(side.get(mode)?.result.requests[0]?.body)).toContain("agents of mine");
    });

    it(`${mode}: a skill of the workspace is found`, ({ skip }) => {
      skip(!hasLocalSandbox, NO_LOCAL_SANDBOX);
      for (const side of [local, ours])
        expect(JSON.stringify(side.get(mode)?.result.requests[0]?.body)).toContain("greets in rhyme");
    });
  }

  it("compares an attempt to connect to something that answers", async () => {
    const socket = connect((listener.address() as AddressInfo).port, "127.0.0.1");
    await once(socket, "connect");
    socket.destroy();
  });

  it("ran in a container", async () => {
    const work = join(directory.path, "where");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("hostname; cat /proc/1/comm")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "where-home"),
      environments: environments(),
    });
    expect(outputs(result.requests.at(-1))[0]).toContain("Output:\nbrig\nrunner\n");
  });

  it("keeps .brig as it is, where Codex would let it be changed", async () => {
    const work = join(directory.path, "own-directory");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("mkdir -p .brig/x; touch ~/x /run/x && echo writable")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "own-directory-home"),
      environments: environments(),
    });
    expect(outputs(result.requests.at(-1))[0]).toMatch(/‘\.brig\/x’: Read-only file system\nwritable\n/);
  });

  it("loses nothing of a flood of output, whose command ends at once", async () => {
    const work = join(directory.path, "flood");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("seq 1 200000", { max_output_tokens: 200 })],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "flood-home"),
      environments: environments(),
    });
    const bytes = Array.from({ length: 200_000 }, (_, index) => `${index + 1}\n`).join("").length;
    const [output = ""] = outputs(result.requests.at(-1));
    // Codex counts four bytes as a token, and keeps 1 MiB of what it was sent.
    expect(output).toContain(`Original token count: ${Math.ceil(bytes / 4)}\n`);
    expect(output).toContain(`${bytes - 2 ** 20} bytes omitted`);
    expect(output).toMatch(/\n199999\n200000\n*$/);
  });

  it("ends a command by ctrl-C with 130, where its local environment says 1", async () => {
    const work = join(directory.path, "ctrl-c");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("echo ready; sleep 60", { tty: true, yield_time_ms: 1000 }), type("\u0003")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "ctrl-c-home"),
      environments: environments(),
    });
    expect(outputs(result.requests.at(-1))[1]).toMatch(/exited with code 130\n[\s\S]*\^C/);
  });

  it("runs its commands over a WebSocket too, with the lines that the server prints", async () => {
    const work = join(directory.path, "ws");
    await mkdir(work);
    const server = brig(["exec-server", "--listen", "ws://127.0.0.1:0"], { cwd: work });
    let printed = "";
    server.stdout?.on("data", (data: Buffer) => {
      printed += data;
    });
    await expect.poll(() => printed).toMatch(/token = .*\n$/);
    const result = await runRealCodex({
      turns: [run("hostname")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "ws-home"),
      environments: `default = "brig"\ninclude_local = false\n[[environments]]\nid = "brig"\n${printed}`,
    });
    server.kill("SIGTERM");
    await server;
    expect(outputs(result.requests.at(-1))[0]).toContain("Output:\nbrig\n");
  });

  it("runs its commands in sh where the image has no bash", async () => {
    const engine = await testEngine();
    const tag = `brig-test/no-bash:${randomBytes(6).toString("hex")}`;
    const dockerfile = Buffer.from("FROM brig/base\nRUN rm -f /bin/bash /usr/bin/bash\n");
    await engine.buildImage(packTar([{ path: "Dockerfile", mode: 0o644, content: dockerfile }]), { tag });
    try {
      const work = join(directory.path, "no-bash");
      await mkdir(work);
      const result = await runRealCodex({
        turns: [() => [call("exec_command", { cmd: "echo $0" })]],
        mode: "workspace-write",
        workspace: work,
        directory: join(directory.path, "no-bash-home"),
        environments: environments("--container-image", tag),
      });
      expect(outputs(result.requests.at(-1))[0]).toContain("Output:\n/bin/sh\n");
    } finally {
      // The server removes its container when its client has gone, which may be after Codex has ended.
      await vi.waitFor(() => engine.removeImage(tag), { timeout: 60_000, interval: 200 });
    }
  });

  it("starts a server of tools that is configured for the environment in its container", async () => {
    const work = join(directory.path, "stdio-server");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("until [ -s started ]; do sleep 0.05; done; cat started")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "stdio-server-home"),
      environments: environments(),
      configuration: `[mcp_servers.tools]
command = "/bin/sh"
args = ["-c", "hostname > started; cat"]
cwd = ${JSON.stringify(work)}
environment_id = "brig"
startup_timeout_sec = 2
`,
    });
    expect(outputs(result.requests.at(-1))[0]).toContain("Output:\nbrig\n");
  });

  it("is told why a server of tools in the environment is not reached by HTTP", async () => {
    const work = join(directory.path, "http");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("echo on")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "http-home"),
      environments: environments(),
      configuration: '[mcp_servers.web]\nurl = "http://127.0.0.1:9/mcp"\nenvironment_id = "brig"\n',
    });
    expect(result.stderr).toContain("brig's exec-server makes no HTTP requests");
    expect(outputs(result.requests.at(-1))[0]).toContain("Output:\non\n");
  });

  it("takes the lines that brig setup codex writes", async () => {
    await using home = await temporaryDirectory();
    const written = await brig(["setup", "codex", "--program", program], {
      env: { CODEX_HOME: home.path },
    });
    expect(written).toMatchObject({ exitCode: 0, stderr: "" });
    const work = join(directory.path, "setup");
    await mkdir(work);
    const result = await runRealCodex({
      turns: [run("hostname")],
      mode: "workspace-write",
      workspace: work,
      directory: join(directory.path, "setup-home"),
      environments: await readFile(join(home.path, "environments.toml"), "utf8"),
    });
    expect(outputs(result.requests.at(-1))[0]).toContain("Output:\nbrig\n");
  });
});

function environments(...more: string[]): string {
  const args = [
    program,
    "exec-server",
    "--listen",
    "stdio",
    ...(testRuntime === undefined ? [] : ["--runtime", testRuntime]),
    ...more,
  ];
  return `default = "brig"
include_local = false
[[environments]]
id = "brig"
program = ${JSON.stringify(process.execPath)}
args = ${JSON.stringify(args)}
`;
}

/** Not every machine has the user namespaces that Codex's own sandbox needs. */
async function canRunLocally(): Promise<boolean> {
  const workspace = join(directory.path, "probe");
  await mkdir(workspace);
  const result = await runRealCodex({
    turns: [run("echo it runs")],
    mode: "workspace-write",
    workspace,
    directory: join(directory.path, "probe-home"),
    environments: null,
  });
  return outputs(result.requests.at(-1))[0]?.includes("it runs\n") ?? false;
}

/** Plays all scenarios of a mode in one session, in a workspace at the same path for both sides. */
async function play(
  mode: Mode,
  { name, environments }: { name: string; environments: string | null },
): Promise<Sides> {
  const workspace = join(directory.path, "work");
  await rm(workspace, { recursive: true, force: true });
  await mkdir(join(workspace, "sub"), { recursive: true });
  await mkdir(join(workspace, ".agents/skills/greet"), { recursive: true });
  await Promise.all(
    Object.entries({
      "AGENTS.md": "agents\nagents of mine\n",
      a: "hello\n",
      gone: "x\n",
      "sub/b": "in sub\n",
      ".agents/skills/greet/SKILL.md": "---\nname: greet\ndescription: greets in rhyme\n---\nGreet.\n",
    }).map(([file, text]) => writeFile(join(workspace, file), text)),
  );
  await writeFile(join(workspace, "p.gif"), gif(2, 2));
  const all = scenarios[mode];
  const result = await runRealCodex({
    turns: all.flatMap(({ turns }) => turns),
    mode,
    workspace,
    directory: join(directory.path, name),
    environments,
  });
  expect(result.exitCode, result.stderr).toBe(0);
  const given = outputs(result.requests.at(-1)).map(withoutChance);
  // Codex does not wait for the environment that it ends.
  if (environments !== null && mode !== "danger-full-access")
    await vi.waitFor(
      () => {
        for (const name of [".git", ".brig"]) expect(readdirSync(workspace)).not.toContain(name);
      },
      { timeout: 60_000 },
    );
  return {
    outputs: all.map(({ turns }) => given.splice(0, turns.length)),
    tree: treeOf(workspace),
    result,
  };
}

/** What the model was given for its calls, as text. */
function outputs(request: ReceivedRequest | undefined): string[] {
  return (request?.body.input ?? [])
    .filter(({ type }) => String(type).endsWith("_output"))
    .map(({ output }) => (typeof output === "string" ? output : JSON.stringify(output)));
}

/** Without what differs from run to run, and without how Codex speaks of an environment that is not its local one. */
function withoutChance(output: string): string {
  return output
    .replace(/^Chunk ID: .*\n/m, "")
    .replace(/Wall time: [0-9.]+ seconds/g, "Wall time: N seconds")
    .replace(/session ID [0-9]+/g, "session ID N")
    .replace(/exec-server rejected request \(-?[0-9]+\): /, "");
}

function treeOf(root: string): Record<string, string> {
  const files = readdirSync(root, { recursive: true, withFileTypes: true });
  return Object.fromEntries(
    files
      .map((file) => {
        const path = join(file.parentPath, file.name);
        return [
          path.slice(root.length + 1),
          file.isFile() ? readFileSync(path, "latin1") : "(directory)",
        ] as const;
      })
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );
}
