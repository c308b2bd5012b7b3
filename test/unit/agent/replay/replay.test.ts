import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ConversationOptions } from "../../../../src/agent/conversation-options.js";
import { parseScript } from "../../../../src/agent/model/script/script.js";
import { createScriptedClient } from "../../../../src/agent/model/script/scripted-client.js";
import { readRecording } from "../../../../src/agent/replay/replay-recording.js";
import { isSame, type ReplayReport, replaySession } from "../../../../src/agent/replay/replay-session.js";
import { runAgent } from "../../../../src/agent/run-agent.js";
import {
  describeTree,
  recordedTreeLimits,
  treeDifferences,
} from "../../../../src/agent/session/read/session-tree.js";
import { openSessionFile } from "../../../../src/agent/session/write/session-file.js";
import type { ToolSpawnOptions } from "../../../../src/tools/tool-sandbox.js";
import { hostFiles } from "../../../support/host-files.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

let folder = "";
let original = "";
let start = "";

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "brig-replay-test-")));
  original = join(folder, "work");
  start = join(folder, "copy/work");
  mkdirSync(original);
  writeFileSync(join(original, "a.txt"), "one\ntwo\n");
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a script in the original directory, of which `start` is a copy made before, and gives its record. */
async function record(yaml: string, more: Partial<ConversationOptions> = {}): Promise<string> {
  cpSync(original, start, { recursive: true });
  const session = await openSessionFile({ home: folder, threadId: "recorded", now: () => new Date() });
  const setting = {
    cwd: original,
    sandboxMode: "workspace-write",
    network: { kind: "none" as const },
    writableRoots: [],
    shell: "bash",
    timezone: "UTC",
  };
  const result = await runAgent({
    prompt: "go",
    model: createScriptedClient(parseScript(yaml, "script.yaml")),
    sandbox: () => Promise.resolve(new MemorySandbox()),
    setting,
    session,
    recordsTree: true,
    ...more,
    ...(more.approver === undefined
      ? {}
      : { setting: { ...setting, approvalPolicy: "on-request" as const } }),
  });
  expect(result.error).toBeUndefined();
  return result.sessionFile ?? "";
}

async function replay(path: string, directory = start): Promise<ReplayReport> {
  return await replaySession({
    recording: await readRecording(path),
    directory,
    openSandbox: () => () => Promise.resolve(new MemorySandbox()),
  });
}

const everyKind = `steps:
  - calls:
      - { shell: { command: [bash, -c, "pwd; cat a.txt"] } }
      - { exec_command: { cmd: "echo x; exit 3" } }
      - { read_file: { file_path: PLACE/a.txt } }
      - { list_dir: { dir_path: PLACE } }
  - calls:
      - apply_patch: |
          *** Begin Patch
          *** Update File: a.txt
          @@
          -two
          +zwei
          *** Add File: PLACE/deep/b.txt
          +new
          *** End Patch
      - { shell: { command: [sleep, "9"], timeout_ms: 300 } }
      - { update_plan: { plan: [{ step: look, status: completed }] } }
      - { shell_command: { command: "chmod +x a.txt; ln -s a.txt link; rm -f nothing" } }
  - text: done
`;

describe("running a session again", () => {
  it("finds nothing different where it starts from the same files, and leaves the recorded directory alone", async () => {
    const path = await record(everyKind.replaceAll("PLACE", original));
    const limits = recordedTreeLimits;
    const before = await describeTree(new MemorySandbox(), original, { limits });
    const report = await replay(path);
    expect(await describeTree(new MemorySandbox(), original, { limits })).toEqual(before);
    expect(report).toMatchObject({ calls: 8, differences: [], skipped: [], tree: { kind: "same" } });
    expect(report.normalised.toSorted()).toEqual([
      "chunk ids",
      "durations",
      "the workspace's path",
      "times of timeouts",
      "wall times",
    ]);
    expect(isSame(report)).toBe(true);
  });

  it("says which output is different, from where on, and which files", async () => {
    const path = await record(everyKind.replaceAll("PLACE", original));
    writeFileSync(join(start, "a.txt"), "one\nTWO\n");
    const { differences, tree } = await replay(path);
    expect(differences.map(({ name, line }) => `${name} ${line}`)).toEqual([
      "shell 5",
      "read_file 2",
      "apply_patch 1",
    ]);
    expect(differences[0]).toMatchObject({
      step: expect.any(Number),
      recorded: ["two", ""],
      replayed: ["TWO", ""],
    });
    expect(tree).toEqual({
      kind: "different",
      differences: [
        { path: "a.txt", kind: "changed" },
        { path: "deep/b.txt", kind: "missing" },
      ],
    });
  });

  it("says that a file is there that was not, and compares outputs though the tree is not recorded", async () => {
    const path = await record(`steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]`);
    writeFileSync(join(start, "more.txt"), "");
    const report = await replay(path);
    expect(report.tree).toEqual({ kind: "different", differences: [{ path: "more.txt", kind: "added" }] });
    const recording = await readRecording(path);
    const without = await replaySession({
      recording: { ...recording, tree: null },
      directory: start,
      openSandbox: () => () => Promise.resolve(new MemorySandbox()),
    });
    expect(without.tree).toMatchObject({ kind: "not compared" });
    expect(isSame(without)).toBe(true);
  });

  it("says that the image is another one now", async () => {
    const path = await record(`steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]`);
    const recording = { ...(await readRecording(path)), image: "brig/base", imageId: "sha256:one" };
    const run = async (imageId: string) => {
      const sandbox = Object.assign(new MemorySandbox(), { proof: { imageId } });
      const openSandbox = () => () => Promise.resolve(sandbox);
      return (await replaySession({ recording, directory: start, openSandbox })).notes;
    };
    expect(await run("sha256:one")).toEqual([]);
    expect(await run("sha256:two")).toEqual(["the image brig/base is not what it was when the session ran"]);
  });

  it("finds what is not the same twice, and does not call it normalised", async () => {
    const path = await record(`steps: [{ calls: [{ shell: { command: [date, +%N] } }] }, { text: done }]`);
    const { differences } = await replay(path);
    expect(differences).toHaveLength(1);
  });

  it("types into the command that has the session's place now, and does not mind how its output is split", async () => {
    const path = await record(`steps:
  - calls: [{ exec_command: { cmd: "read line; echo got $line; sleep 0.3; echo end", tty: true, yield_time_ms: 250 } }]
  - expect: { matches: "session ID (?<id>[0-9]+)" }
    calls: [{ write_stdin: { session_id: "\${id}", chars: "hello\\n", yield_time_ms: 250 } }]
  - calls: [{ write_stdin: { session_id: "\${id}", chars: "", yield_time_ms: 5000 } }]
  - text: done
`);
    expect((await replay(path)).differences).toEqual([]);
  });

  it("runs again what it can: not what was interrupted, and not what the provider ran", async () => {
    const path = join(folder, "made.jsonl");
    const item = (payload: object) => ({ type: "response_item", payload });
    const call = (id: string) => ({
      type: "function_call",
      name: "shell",
      arguments: '{"command":["true"]}',
      call_id: id,
    });
    const output = (id: string, text: string) => ({
      type: "function_call_output",
      call_id: id,
      output: text,
    });
    const records = [
      { type: "session_meta", payload: { id: "made", cwd: original } },
      item({ type: "web_search_call", id: "ws", action: { type: "search", query: "x" } }),
      ...["a", "b", "c", "e", "f", "d"].map((id) => item(call(id))),
      item(output("a", '{"output":"","metadata":{"exit_code":0,"duration_seconds":0.0}}')),
      item(output("b", "aborted")),
      item(output("c", "Wall time: 0.5 seconds\naborted by user")),
      item(output("e", "Wall time: 0.5 seconds\naborted: the disk is full")),
      item(output("f", "aborted after 0.5s: the disk is full")),
    ];
    writeFileSync(path, records.map((record) => JSON.stringify(record)).join("\n"));
    const report = await replay(path, original);
    expect(report).toMatchObject({ calls: 1, differences: [] });
    expect(report.skipped.map(({ reason }) => reason)).toEqual([
      "the model's provider ran it",
      "it was interrupted",
      "it was interrupted",
      "it was interrupted",
      "it was interrupted",
      "it has no output in the record",
    ]);
  });

  it("does not repeat what an MCP server answered, and says so", async () => {
    const path = join(folder, "with-servers.jsonl");
    const longName = `${"s".repeat(55)}_0123abcd`;
    const call = (id: string, name: string, output: string) =>
      [
        { type: "function_call", name, arguments: "{}", call_id: id },
        { type: "function_call_output", call_id: id, output },
      ].map((payload) => ({ type: "response_item", payload }));
    const records = [
      { type: "session_meta", payload: { id: "made", cwd: original } },
      ...call("a", "docs__search", "Wall time: 0.1 seconds\nOutput:\nfound"),
      ...call("l", longName, "Wall time: 0.1 seconds\nOutput:\nfound"),
      ...call("b", "list_mcp_resources", '{"resources":[]}'),
      ...call("c", "search_tool_bm25", '{"active_selected_tools":["docs__search"],"tools":[]}'),
      ...call("d", "docs__none", "unsupported call: docs__none"),
    ];
    writeFileSync(path, records.map((record) => JSON.stringify(record)).join("\n"));
    const report = await replay(path, original);
    expect(report).toMatchObject({ calls: 1, differences: [] });
    expect(report.skipped.map(({ name, reason }) => [name, reason])).toEqual(
      ["docs__search", longName, "list_mcp_resources", "search_tool_bm25"].map((name) => [
        name,
        "an MCP server answered it",
      ]),
    );
  });

  it("answers as the person did, and leaves aside what had full access unless it may have it again", async () => {
    const answers = ["approved", "denied"] as const;
    let asked = 0;
    const escalated = (name: string) =>
      `{ shell: { command: [sh, -c, "echo ${name} >> out.txt"], sandbox_permissions: require_escalated, justification: why } }`;
    const path = await record(
      `steps: [{ calls: [${escalated("yes")}] }, { calls: [${escalated("no")}] }, { text: done }]`,
      {
        approver: { ask: () => Promise.resolve(answers[asked++] ?? "abort") },
        escalatedSandbox: () => Promise.resolve(new MemorySandbox()),
      },
    );
    expect(asked).toBe(2);
    const careful = await replay(path);
    expect(careful).toMatchObject({ calls: 1, differences: [] });
    expect(careful.skipped.map(({ reason }) => reason)).toEqual(["it may have run with full access"]);
    expect(careful.tree).toMatchObject({
      kind: "different",
      differences: [{ path: "out.txt", kind: "missing" }],
    });
    let opened = 0;
    const report = await replaySession({
      recording: await readRecording(path),
      directory: start,
      openSandbox: () => () => Promise.resolve(new MemorySandbox()),
      openFullAccess: () => () => {
        opened++;
        return Promise.resolve(new MemorySandbox());
      },
    });
    expect(report).toMatchObject({ calls: 2, differences: [], skipped: [], tree: { kind: "same" } });
    expect(opened).toBe(1);
  });

  it("fails with the sandbox, and closes what it opened", async () => {
    const path = await record(`steps: [{ calls: [{ shell: { command: [echo, hi] } }] }, { text: done }]`);
    const recording = await readRecording(path);
    const openSandbox = () => () => Promise.reject(new Error("no engine"));
    await expect(replaySession({ recording, directory: start, openSandbox })).rejects.toThrow("no engine");
    const sandbox = new MemorySandbox();
    await replaySession({ recording, directory: start, openSandbox: () => () => Promise.resolve(sandbox) });
    expect(sandbox.isClosed).toBe(true);
  });
});

describe("a tree", () => {
  const limits = recordedTreeLimits;

  async function entries(root: string) {
    const tree = await describeTree(new MemorySandbox(), root, { limits });
    return tree.kind === "described" ? tree.entries : {};
  }

  it("is its files with what they hold, links with where they lead, and no directories", async () => {
    mkdirSync(join(original, "empty"));
    mkdirSync(join(original, ".git"));
    writeFileSync(join(original, ".git/index"), "x");
    symlinkSync("/etc/passwd", join(original, "link"));
    const before = await entries(original);
    expect(Object.keys(before)).toEqual(["a.txt", "link"]);
    expect(before.link).toMatch(/^link [0-9a-f]{24}$/);
    chmodSync(join(original, "a.txt"), 0o755);
    expect(treeDifferences(before, await entries(original))).toEqual([{ path: "a.txt", kind: "changed" }]);
  });

  it("of more files, bytes or time than the limits allow is left out, with the reason", async () => {
    writeFileSync(join(original, "b.txt"), Buffer.alloc(600_000));
    const reason = async (limited: Partial<typeof limits>) => {
      const tree = await describeTree(new MemorySandbox(), original, { limits: { ...limits, ...limited } });
      return tree.kind === "left-out" ? tree.reason : "";
    };
    expect(await reason({ maxFiles: 1 })).toBe("it has more than 1 files");
    expect(await reason({ maxBytes: 512 * 1024 })).toBe("it has more than 0.5 MiB");
    const memory = new MemorySandbox();
    const slow = {
      files: { ...hostFiles, list: () => sleep(100) },
      spawn: (argv: readonly string[]) => memory.spawn(argv),
    };
    expect(await describeTree(slow, original, { limits: { ...limits, maxMs: 20 } })).toMatchObject({
      reason: "it takes more than 0.02 seconds to read",
    });
    expect(await reason({})).toBe("");
  });

  it("is the same whether it is read file by file or by the image's own programs", async () => {
    const names = [
      "plain",
      "with space",
      "quote'\"",
      "-dash",
      "back\\slash",
      "new\nline",
      "ünï",
      "\u{1f600}",
      "$(x)",
    ];
    for (let n = 0; n < 60; n++) {
      mkdirSync(join(original, `d${n % 7}`), { recursive: true });
      const file = join(original, `d${n % 7}`, `${names[n % names.length]}-${n}`);
      writeFileSync(file, "x".repeat(n));
      if (n % 3 === 0) chmodSync(file, 0o755);
    }
    symlinkSync("nowhere", join(original, "link"));
    const memory = new MemorySandbox();
    const started: string[] = [];
    const asked = {
      files: hostFiles,
      spawn(argv: readonly string[], options?: ToolSpawnOptions) {
        started.push(argv.join(" "));
        return memory.spawn(argv, options);
      },
    };
    const withPrograms = await describeTree(asked, original, { limits });
    expect(started).toEqual(["xargs -0 stat -c %f %s %n", "xargs -0 sha256sum"]);
    const without = { files: hostFiles, spawn: () => memory.spawn(["/proc/no/such/program"]) };
    expect(await describeTree(without, original, { limits })).toEqual(withPrograms);
    expect(Object.keys(await entries(original))).toHaveLength(62);
    expect(await describeTree(asked, original, { limits: { ...limits, maxBytes: 1000 } })).toMatchObject({
      kind: "left-out",
    });
  });

  it("that is not there is left out too", async () => {
    expect(await describeTree(new MemorySandbox(), join(folder, "none"), { limits })).toMatchObject({
      kind: "left-out",
    });
  });
});
