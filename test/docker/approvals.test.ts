import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { AgentSandbox } from "../../src/agent/agent-sandbox.js";
import type { ApprovalAnswer, ApprovalSituation, Approver } from "../../src/agent/approvals/approvals.js";
import { EscalatedSandbox } from "../../src/agent/approvals/escalated-sandbox.js";
import { type ApprovalPlay, playApprovals, ScriptedApprover } from "../support/approvals.js";
import { runningCommands } from "../support/processes.js";
import { differs, titled } from "../support/runtime-differences.js";
import {
  openTestSandbox,
  type TemporaryDirectory,
  type TestSandbox,
  temporaryDirectory,
} from "../support/sandbox.js";

let directory: TemporaryDirectory;
let first: TestSandbox;
let second: TestSandbox;
let workspace: string;

beforeAll(async () => {
  directory = await temporaryDirectory();
  workspace = join(directory.path, "work");
  await mkdir(workspace);
  first = await openTestSandbox({ workspace });
  second = await openTestSandbox({ workspace, mode: "danger-full-access" });
});

afterAll(async () => {
  await first?.[Symbol.asyncDispose]();
  await second?.[Symbol.asyncDispose]();
  await directory?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  await second.sandbox.exec(["rm", "-rf", "/etc/brig", "/etc/brig-note"]);
});

const restricted: ApprovalSituation = {
  policy: "on-request",
  isRestricted: true,
  hasNetwork: false,
  canEscalate: true,
};

async function play(
  responses: ApprovalPlay["responses"],
  options: Partial<ApprovalPlay> & { policy?: ApprovalSituation["policy"]; approver?: Approver } = {},
) {
  const { policy = "on-request", ...rest } = options;
  return await playApprovals({
    responses,
    cwd: workspace,
    sandbox: first.sandbox,
    escalated: () => Promise.resolve(second.sandbox),
    situation: { ...restricted, policy },
    ...rest,
  });
}

const escalatedShell = (script: string, more: object = {}) => ({
  shell: { command: ["bash", "-c", script], sandbox_permissions: "require_escalated", ...more },
});

const script = (text: string) => ({ shell: { command: ["bash", "-c", text] } });

describe("what the sandbox refuses", () => {
  it("is a write outside the workspace: EROFS inside, done once it is approved", async () => {
    const approver = new ScriptedApprover("approved");
    const { outputs, events } = await play(
      [[script("echo changed > /etc/brig-note && cat /etc/brig-note")]],
      {
        policy: "on-failure",
        approver,
      },
    );
    expect(approver.asked).toMatchObject([
      {
        place: "escalated",
        reason: "command failed; retry without sandbox?",
        denial: {
          errno: "EROFS",
          evidence: expect.stringMatching(/\/etc\/brig-note: Read-only file system$/),
          toldBy: "command",
        },
      },
    ]);
    expect(outputs[0]).toContain('"output":"changed\\n","metadata":{"exit_code":0');
    expect(await second.sandbox.files.read("/etc/brig-note")).toEqual(Buffer.from("changed\n"));
    expect(events.filter(({ kind }) => kind === "command-ended")).toMatchObject([
      { exitCode: 1 },
      { exitCode: 0, output: "changed\n" },
    ]);
  });

  it.skipIf(differs("network.reach"))(
    titled("network.reach", "is the network: ENETUNREACH inside, reached once it is approved"),
    async () => {
      // Connecting a datagram socket asks for a route and sends nothing.
      const reach = "exec 3<>/dev/udp/192.0.2.1/9 && echo reached";
      const approver = new ScriptedApprover("approved");
      const { outputs } = await play([[script(reach)]], { policy: "on-failure", approver });
      expect(approver.asked).toMatchObject([{ denial: { errno: "ENETUNREACH" } }]);
      expect(outputs[0]).toContain("reached");
      const inside = await first.sandbox.exec(["bash", "-c", reach]);
      expect(inside.stderr).toContain("Network is unreachable");
    },
  );

  it("is asked about on the word of an approved command too, which is named as its own: it may lie", async () => {
    const lie = "id -u > /tmp/ran; echo 'tool: permission denied' >&2; exit 1";
    await second.sandbox.exec(["rm", "-f", "/tmp/ran"]);
    const approver = new ScriptedApprover("approved", "denied");
    const { outputs } = await play([[script(lie)]], { policy: "untrusted", approver });
    expect(approver.asked).toMatchObject([
      { place: "sandbox", denial: null },
      {
        place: "escalated",
        denial: { errno: "EACCES", evidence: "tool: permission denied", toldBy: "command" },
      },
    ]);
    expect(outputs[0]).toContain("[not run again with full access: rejected by user]");
    await expect(second.sandbox.files.read("/tmp/ran")).rejects.toThrow();
    // With a second approval it does run there.
    await play([[script(lie)]], { policy: "untrusted", approver: new ScriptedApprover("approved") });
    expect((await second.sandbox.files.read("/tmp/ran")).toString()).toBe("0\n");
  });

  it("is no question where the command fails by itself, or the policy leaves it at that", async () => {
    const approver = new ScriptedApprover("approved");
    const failing = await play([[script("echo broken; exit 3")]], { policy: "on-failure", approver });
    expect(failing.outputs[0]).toContain('"exit_code":3');
    const refused = await play([[script("touch /etc/brig-note")]], { policy: "on-request", approver });
    expect(refused.outputs[0]).toContain("Read-only file system");
    expect(approver.asked).toEqual([]);
  });
});

describe("the second sandbox", () => {
  it("is started by the first approved escalation only, once, and shares the workspace", async () => {
    let starts = 0;
    const lazy = new EscalatedSandbox(
      () => {
        starts++;
        return Promise.resolve<AgentSandbox>({ ...shared(second.sandbox), close: () => Promise.resolve() });
      },
      () => undefined,
    );
    const approver = new ScriptedApprover("denied", "approved");
    await play([[script("echo from inside > note")], [escalatedShell("cat note")]], {
      approver,
      escalated: () => lazy.get(),
    });
    expect(starts).toBe(0);
    const { outputs } = await play([[escalatedShell("cat note; id -u; pwd")], [escalatedShell("true")]], {
      approver,
      escalated: () => lazy.get(),
    });
    expect(starts).toBe(1);
    expect(outputs[0]).toContain(`from inside\\n0\\n${workspace}\\n`);
  });

  it("can do in the workspace what the first cannot: write where names are protected", async () => {
    expect((await first.sandbox.exec(["git", "init", "-q"])).exitCode).not.toBe(0);
    const approver = new ScriptedApprover("approved");
    const { outputs } = await play([[escalatedShell("git init -q && git status --short --branch")]], {
      approver,
    });
    expect(outputs[0]).toContain("No commits yet");
  });
});

/** What an agent needs of a sandbox, without the end of it. */
function shared(sandbox: TestSandbox["sandbox"]): Omit<AgentSandbox, "close"> {
  return { id: sandbox.id, files: sandbox.files, spawn: (...args) => sandbox.spawn(...args) };
}

describe("what an approved command leaves running", () => {
  /** Does for root whatever it is told through a socket in the workspace. */
  const servant = `
import socket, subprocess
door = socket.socket(socket.AF_UNIX)
door.bind("door")
door.listen()
while True:
    caller = door.accept()[0]
    caller.sendall(subprocess.run(caller.recv(4096), shell=True, capture_output=True).stdout)
    caller.close()`;
  const knock = `
import errno, socket
caller = socket.socket(socket.AF_UNIX)
try:
    caller.connect("door")
    caller.sendall(b"touch /etc/brig-note && echo done")
    print(caller.recv(4096).decode())
except OSError as error: print(errno.errorcode[error.errno])`;
  const leaveServant =
    "rm -f door; setsid python3 servant.py >/dev/null 2>&1 & until [ -S door ]; do sleep 0.02; done";
  const ended = "[what it left running was ended: outside the sandbox nothing goes on after its command]";

  beforeAll(async () => {
    await writeFile(join(workspace, "servant.py"), servant);
    await writeFile(join(workspace, "knock.py"), knock);
  });

  const knockFromInside = async () => (await first.sandbox.exec(["python3", "knock.py"])).stdout.trim();

  it.skipIf(differs("files.sockets"))(
    titled(
      "files.sockets",
      "would serve the sandbox: it is ended with the command, and nobody answers: ECONNREFUSED",
    ),
    async () => {
      await second.sandbox.exec(["bash", "-c", leaveServant]);
      expect(await knockFromInside()).toBe("done");
      await second.sandbox.exec(["pkill", "-f", "servant.py"]);
      const approver = new ScriptedApprover("approved");
      const { outputs } = await play([[escalatedShell(leaveServant)], [escalatedShell("true")]], {
        approver,
      });
      expect(await knockFromInside()).toBe("ECONNREFUSED");
      expect(await runningCommands(second.sandbox)).toEqual([]);
      expect(outputs[0]).toContain(`"output":"\\n${ended}\\n","metadata":{"exit_code":0`);
      expect(outputs[1]).toContain('"output":"","metadata":{"exit_code":0');
    },
  );

  it("in a command session ends with that, and not before", async () => {
    const awaited = (seconds: number) => `until pgrep -fx "sleep ${seconds}" > /dev/null; do :; done`;
    const outside = { login: false, yield_time_ms: 250, sandbox_permissions: "require_escalated" };
    const { outputs } = await play(
      [
        [{ exec_command: { ...outside, cmd: "setsid sleep 304 & echo up; wait" } }],
        [escalatedShell(`setsid sleep 305 & ${awaited(304)}; ${awaited(305)}; pgrep -a sleep`)],
        [escalatedShell("pgrep -a sleep")],
        [{ exec_command: { ...outside, cmd: "setsid sleep 306 & echo over", yield_time_ms: 5000 } }],
        [escalatedShell("pgrep -a sleep")],
      ],
      { approver: new ScriptedApprover("approved") },
    );
    const sleeping = outputs.map((output) => output.match(/sleep \d+/g) ?? []);
    expect(sleeping).toEqual([[], ["sleep 304", "sleep 305"], ["sleep 304"], [], ["sleep 304"]]);
    expect(outputs[0]).toContain("Process running with session ID");
    expect(outputs[3]).toMatch(
      /Process exited with code 0\n.*\nOutput:\nover\n\n\[what it left running was ended/,
    );
    expect(await runningCommands(second.sandbox)).toEqual([]);
  });
});

describe("a command session that was let leave the sandbox", () => {
  it("goes on there: what is typed later reaches it without another question", async () => {
    const approver = new ScriptedApprover("approved");
    const start = {
      exec_command: {
        cmd: "echo ready; read line; echo $line > /etc/brig-note; cat /etc/brig-note",
        tty: true,
        login: false,
        yield_time_ms: 250,
        sandbox_permissions: "require_escalated",
      },
    };
    const { outputs } = await playApprovals({
      responses: [
        [start],
        // biome-ignore lint/suspicious/noTemplateCurlyInString: the script puts the session's number there
        [{ write_stdin: { session_id: "${id}", chars: "typed\n", yield_time_ms: 30_000 } }],
      ],
      expectations: [["session ID (?<id>\\d+)"], []],
      cwd: workspace,
      sandbox: first.sandbox,
      escalated: () => Promise.resolve(second.sandbox),
      situation: restricted,
      approver,
    });
    expect(outputs[1]).toContain("Process exited with code 0");
    expect(approver.asked).toHaveLength(1);
    expect(String(await second.sandbox.files.read("/etc/brig-note"))).toBe("typed\n");
  });
});

describe("a patch", () => {
  const add = (path: string) => `*** Begin Patch\n*** Add File: ${path}\n+new\n*** End Patch\n`;

  it("is applied in the sandbox without a question where that lets it", async () => {
    const approver = new ScriptedApprover("denied");
    const { outputs } = await play([[{ apply_patch: add("inside.txt") }]], { approver });
    expect(outputs[0]).toContain("A inside.txt");
    expect(approver.asked).toEqual([]);
  });

  it.each(["on-request", "on-failure"] as const)(
    "under %s is asked about where the sandbox refuses, and only what is left is done outside",
    async (policy) => {
      const approver = new ScriptedApprover("approved");
      const patch = `*** Begin Patch
*** Add File: kept-${policy}.txt
+inside
*** Add File: /etc/brig/added.txt
+outside
*** Update File: kept-${policy}.txt
@@
-inside
+inside twice
*** End Patch
`;
      const { outputs, events } = await play([[{ apply_patch: patch }]], { policy, approver });
      expect(approver.asked).toMatchObject([
        { place: "escalated", denial: { errno: "EROFS" }, action: { kind: "patch", tool: "apply_patch" } },
      ]);
      expect(outputs[0]).toMatch(
        new RegExp(
          `^Exit code: 0\\n.*\\nOutput:\\nSuccess. Updated the following files:\\nA kept-${policy}.txt\\nA /etc/brig/added.txt\\nM kept-${policy}.txt\\n$`,
        ),
      );
      expect(await readFile(join(workspace, `kept-${policy}.txt`), "utf8")).toBe("inside twice\n");
      expect(String(await second.sandbox.files.read("/etc/brig/added.txt"))).toBe("outside\n");
      expect(events.filter(({ kind }) => kind.startsWith("patch-"))).toMatchObject([
        { kind: "patch-started", changes: { length: 3 } },
        { kind: "patch-ended", changes: { length: 3 }, success: true },
      ]);
    },
  );

  it("that is declined outside leaves what the sandbox let it do, and says so", async () => {
    const approver = new ScriptedApprover("denied");
    const { outputs } = await play([[{ apply_patch: add("/etc/brig/added.txt") }]], { approver });
    expect(outputs[0]).toMatch(
      /Read-only file system \(os error 30\)\n\[not run again with full access: rejected by user\]/,
    );
    await expect(second.sandbox.files.stat("/etc/brig/added.txt")).rejects.toMatchObject({
      code: "file.not-found",
    });
  });

  it("under never stays in the sandbox", async () => {
    const approver = new ScriptedApprover("approved");
    const { outputs } = await play([[{ apply_patch: add("/etc/brig/added.txt") }]], {
      policy: "never",
      approver,
    });
    expect(outputs[0]).toContain("Read-only file system (os error 30)\n");
    expect(approver.asked).toEqual([]);
  });

  it("under untrusted is asked about before it touches anything", async () => {
    const declined = await play([[{ apply_patch: add("declined.txt") }]], {
      policy: "untrusted",
      approver: new ScriptedApprover("denied"),
    });
    expect(declined.outputs).toEqual(["patch rejected by user"]);
    await expect(readFile(join(workspace, "declined.txt"))).rejects.toThrow(/ENOENT/);
    const approver = new ScriptedApprover("approved_for_session");
    const approved = await play(
      [[{ apply_patch: add("agreed.txt") }], [{ apply_patch: add("agreed.txt") }]],
      {
        policy: "untrusted",
        approver,
      },
    );
    expect(approved.outputs).toMatchObject([
      expect.stringContaining("A agreed.txt"),
      expect.stringContaining("A agreed.txt"),
    ]);
    expect(approver.asked).toMatchObject([
      {
        place: "sandbox",
        action: { changes: [{ kind: "add", path: join(workspace, "agreed.txt") }] },
      },
    ]);
  });

  it.skipIf(differs("files.exchange"))(
    titled("files.exchange", "goes through no link, however fast the sandbox puts one in its way"),
    async () => {
      await second.sandbox.files.mkdir("/etc/brig");
      await first.sandbox.exec(["sh", "-c", "mkdir swapped && ln -s /etc/brig link"]);
      await using _swapping = await swapForever(first.sandbox, "swapped", "link");
      const path = `${workspace}/swapped/file`;
      const hasEscaped = () => second.sandbox.files.stat("/etc/brig/file").then(() => true, isMissing);

      for (let i = 0; i < 2000 && !(await hasEscaped()); i++)
        await second.sandbox.files.writeEach([{ path, data: "escaped" }]);
      expect(await hasEscaped()).toBe(true);
      await second.sandbox.files.remove("/etc/brig/file");

      for (let i = 0; i < 200; i++) {
        const { failure } = await second.sandbox.files.writeEach([{ path, data: "x" }], {
          refuseSymlinks: true,
        });
        if (failure !== null)
          expect(failure).toMatchObject({ code: "file.symlink", cause: { code: "ELOOP" } });
      }
      for (let i = 0; i < 20; i++) {
        const patch = `*** Begin Patch\n*** Add File: /etc/brig/asked.txt\n+x\n*** Add File: swapped/file\n+x\n*** End Patch\n`;
        const { outputs } = await play([[{ apply_patch: patch }]], {
          approver: new ScriptedApprover("approved"),
        });
        expect(outputs[0]).toMatch(/Success|leads through a symbolic link/);
      }
      expect(await hasEscaped()).toBe(false);
    },
  );

  it("in a shell's heredoc is asked about as a patch", async () => {
    const approver = new ScriptedApprover("denied");
    const heredoc = `apply_patch <<'EOF'\n${add("heredoc.txt")}EOF`;
    const { outputs } = await play([[script(heredoc)]], { policy: "untrusted", approver });
    expect(outputs).toEqual(["patch rejected by user"]);
    expect(approver.asked).toMatchObject([{ action: { kind: "patch", tool: "shell" } }]);
  });
});

/** Swaps two names of the workspace as fast as it can until it is disposed of. */
async function swapForever(sandbox: TestSandbox["sandbox"], one: string, other: string) {
  const script = `
import ctypes, sys
rename = ctypes.CDLL(None).renameat2
print("swapping", flush=True)
while rename(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) == 0: pass`;
  const swapping = await sandbox.spawn(["python3", "-c", script, one, other]);
  await once(swapping.stdout, "data");
  return { [Symbol.asyncDispose]: () => swapping.kill() };
}

function isMissing(error: unknown): false {
  expect(error).toMatchObject({ code: "file.not-found" });
  return false;
}

describe("an approval", () => {
  const answersFor = async (answer: ApprovalAnswer, calls: ApprovalPlay["responses"]) => {
    const approver = new ScriptedApprover(answer);
    const { outputs } = await play(calls, { approver });
    return { asked: approver.asked.length, outputs };
  };

  it("once is for this call alone", async () => {
    const call = escalatedShell("touch /etc/brig-note");
    expect((await answersFor("approved", [[call], [call]])).asked).toBe(2);
  });

  it("for the session is for this command in this directory, however the shell is spelled", async () => {
    await mkdir(join(workspace, "elsewhere"), { recursive: true });
    const call = escalatedShell("touch /etc/brig-note");
    const spelled = {
      shell: {
        command: ["/bin/bash", "-lc", "touch '/etc/brig-note'"],
        sandbox_permissions: "require_escalated",
      },
    };
    const { asked } = await answersFor("approved_for_session", [
      [call],
      [spelled],
      [escalatedShell("touch /etc/brig-note", { workdir: "elsewhere" })],
      [escalatedShell("touch /etc/brig-other")],
    ]);
    expect(asked).toBe(3);
  });

  it("by prefix is for every command that begins so, and for no script that does more", async () => {
    const call = (text: string) => escalatedShell(text, { prefix_rule: ["touch", "/etc/brig-note"] });
    const approver = new ScriptedApprover({ approvedPrefix: ["touch", "/etc/brig-note"] }, "denied");
    await play(
      [
        [call("touch /etc/brig-note")],
        [call("touch /etc/brig-note /etc/brig-note")],
        [call("touch /etc/brig-note && touch /etc/passwd")],
        [call("touch /etc/brig-note > /etc/passwd")],
        [call("touch /etc/brig-not*")],
      ],
      { approver },
    );
    expect(approver.asked.map(({ action }) => (action.kind === "command" ? action.argv[2] : ""))).toEqual([
      "touch /etc/brig-note",
      "touch /etc/brig-note && touch /etc/passwd",
      "touch /etc/brig-note > /etc/passwd",
      "touch /etc/brig-not*",
    ]);
  });

  it("for a directory of the sandbox's does not reach outside of it", async () => {
    const approver = new ScriptedApprover("approved_for_session", "denied");
    const plain = { shell: { command: ["rm", "-f", "nothing-there"] } };
    await play(
      [[plain], [plain], [{ shell: { ...plain.shell, sandbox_permissions: "require_escalated" } }]],
      {
        approver,
      },
    );
    expect(approver.asked.map(({ place }) => place)).toEqual(["sandbox", "escalated"]);
  });

  it("asked for in the old spelling is the same request", async () => {
    const approver = new ScriptedApprover("approved");
    const { outputs } = await play(
      [[{ shell: { command: ["id", "-u"], with_escalated_permissions: true, justification: "May I?" } }]],
      { approver },
    );
    expect(approver.asked).toMatchObject([
      { place: "escalated", action: { escalation: { isAsked: true, justification: "May I?" } } },
    ]);
    expect(outputs[0]).toContain('"output":"0\\n"');
  });
});

it("the host's own files outside the workspace stay out of reach, approved or not", async () => {
  await writeFile(join(directory.path, "secret"), "host's");
  const approver = new ScriptedApprover("approved");
  const { outputs } = await play([[escalatedShell(`cat ${join(directory.path, "secret")}`)]], { approver });
  expect(outputs[0]).toContain("No such file or directory");
  expect(execFileSync("cat", [join(directory.path, "secret")], { encoding: "utf8" })).toBe("host's");
});
