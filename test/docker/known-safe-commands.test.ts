import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { APPROVAL_POLICIES, type ApprovalPolicy } from "../../src/sandbox/policy/approval-policy.js";
import type { SandboxMode } from "../../src/sandbox/policy/modes.js";
import { CommandSafety } from "../../src/tools/command/command-safety.js";
import { type ApprovalPlay, playApprovals } from "../support/approvals.js";
import { becomeHostUser, giveToHostUser, OWNING_USERS } from "../support/host-users.js";
import {
  openTestSandbox,
  type TemporaryDirectory,
  type TestSandbox,
  temporaryDirectory,
} from "../support/sandbox.js";

/**
 * What starts without a question because it is known to only look, run in a directory where everything that could be taken for a
 * program, a configuration or an option is there and leaves a trace in CANARY when it is started.
 */
const CANARY = "/tmp/canary";

const looking =
  "cat cd cut echo expr false grep head id ls nl numfmt paste pwd rev seq stat tac tail tr true uname wc which whoami";

const safe: readonly (readonly string[])[] = [
  ...looking.split(" ").map((name) => [name]),
  ["cat", "file", ".profile"],
  ["cut", "-c1-3", "file"],
  ["expr", "1", "+", "1"],
  ["grep", "-rn", "x", "."],
  ["head", "-n", "1", "file"],
  ["ls", "-laR", "--color=always"],
  ["numfmt", "--to=iec", "2048"],
  ["seq", "3"],
  ["stat", "-L", "file"],
  ["tail", "-n", "1", "file"],
  ["tr", "a", "b"],
  ["wc", "-l", "file"],
  ["which", "-a", "ls"],
  ["base64", "-w0", "file"],
  ["find", ".", "-type", "f", "-name", "*e*", "-print"],
  ["find", "-L", ".", "-newer", "file", "-ls"],
  ["rg", "-n", "--hidden", "--no-ignore", "x", "."],
  ["rg", "--files"],
  ["sed", "-n", "1,5p", "file"],
  ["sed", "-n", "1p"],
  ["uniq", "-c", "file"],
  ["bash", "-c", "ls && cat file | head -n 1; rg x"],
  ["bash", "-lc", "cd repository && ls && rg x && find ."],
  ["sh", "-c", "cd evil.git; cat HEAD config | wc -l"],
  ["bash", "-lc", "cd bin && ls && which ls"],
];

/** What is asked about, and starts the program of the directory's owner where it is let. */
const starting: readonly (readonly string[])[] = [
  ["git", "-C", "evil.git", "status"],
  ["git", "--git-dir=evil.git", "--work-tree=.", "status"],
  ["bash", "-c", "cd evil.git && git status"],
  ["bash", "-lc", "git -C repository status --short"],
  ["git", "-C", "repository", "diff"],
  ["git", "-C", "repository", "diff", "--ext-diff"],
  ["git", "-C", "repository", "diff", "--textconv", "--no-ext-diff"],
  ["git", "-C", "repository", "log", "-p"],
  ["git", "-C", "repository", "log", "-p", "--textconv", "--no-ext-diff"],
  ["git", "-C", "repository", "show"],
  ["git", "-C", "repository", "--no-optional-locks", "status"],
  ["git", "-C", "repository", "branch", "--format=%(refname)", "--edit-description"],
  ["rg", "--pre", "./evil", "x", "file"],
  ["bash", "-c", 'cd pre && rg x ""*'],
  ["bash", "-c", "cd pre && rg x *"],
  ["find", ".", "-maxdepth", "0", "-exec", "./evil", ";"],
  ["bash", "-c", "find bin -name evil -execdir ./evil {} +"],
  ["sed", "-n", "1e./evil", "file"],
  ["sort", "-S", "1k", "--compress-program=./evil", "long"],
  ["tar", "-cf", "/dev/null", "--checkpoint=1", "--checkpoint-action=exec=./evil", "long"],
  ["./ls"],
  ["bash", "-c", "./cat file"],
  ["bash", "-c", "echo $(./evil)"],
];

/** Looks like the ones above, starts nothing here, and is asked about all the same. */
const others: readonly (readonly string[])[] = [
  ["git", "-C", "repository", "branch"],
  ["git", "-C", "repository", "log", "--oneline"],
  ["sed", "-n", "1w/tmp/written", "file"],
  ["uniq", "file", "/tmp/written"],
  ["base64", "-o", "/tmp/written", "file"],
  ["find", "/tmp/nothing", "-delete"],
];

let directory: TemporaryDirectory;
const sandboxes = new Map<SandboxMode, TestSandbox>();
const modes = ["read-only", "workspace-write", "danger-full-access"] as const satisfies SandboxMode[];

beforeAll(async () => {
  directory = await temporaryDirectory();
  makeHostile(directory.path);
  for (const mode of modes) sandboxes.set(mode, await openTestSandbox({ workspace: directory.path, mode }));
});

afterAll(async () => {
  for (const opened of sandboxes.values()) await opened[Symbol.asyncDispose]();
  await directory?.[Symbol.asyncDispose]();
});

beforeEach(async () => {
  for (const { sandbox } of sandboxes.values()) await sandbox.exec(["rm", "-f", CANARY, "/tmp/written"]);
});

function makeHostile(folder: string): void {
  const program = `#!/bin/sh\nprintf '%s\\n' "$0 $*" >> ${CANARY}\n`;
  const plant = (path: string) => {
    writeFileSync(path, program);
    chmodSync(path, 0o755);
  };
  const names = [
    ...looking.split(" "),
    ..."base64 find rg sed uniq gzip less cat sh bash git evil".split(" "),
  ];
  for (const at of [folder, join(folder, "bin")]) {
    mkdirSync(at, { recursive: true });
    for (const name of names) plant(join(at, name));
  }
  writeFileSync(join(folder, "file"), "x\n");
  writeFileSync(join(folder, "long"), "some line or other\n".repeat(20_000));
  for (const option of ["-exec", "-z", "--files0-from=file", "-fevil", "--search-zip"])
    writeFileSync(join(folder, option), "");
  for (const name of [
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshenv",
    ".ripgreprc",
    ".inputrc",
    ".rgignore",
  ])
    writeFileSync(join(folder, name), `./evil\n`);
  const evil = join(folder, "evil");
  mkdirSync(join(folder, "pre"));
  plant(join(folder, "pre", "evil"));
  writeFileSync(join(folder, "pre", "--pre=sh"), "");
  const bare = join(folder, "evil.git");
  for (const name of ["objects", "refs"]) mkdirSync(join(bare, name), { recursive: true });
  writeFileSync(join(bare, "HEAD"), "ref: refs/heads/main\n");
  writeFileSync(
    join(bare, "config"),
    `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = ${evil}\n`,
  );
  const repository = join(folder, "repository");
  mkdirSync(repository);
  const git = (...args: string[]) =>
    execFileSync("git", ["-C", repository, ...args], { env: gitEnvironment });
  git("init", "-q", "-b", "main");
  writeFileSync(join(repository, "tracked"), "one\n");
  git("add", "tracked");
  git("commit", "-q", "-m", "first");
  writeFileSync(join(repository, "tracked"), "two\n");
  writeFileSync(join(repository, ".gitattributes"), "* diff=evil filter=evil\n");
  plant(join(repository, ".git", "hooks", "post-index-change"));
  for (const [key, value] of [
    ["core.fsmonitor", evil],
    ["diff.external", evil],
    ["diff.evil.command", evil],
    ["diff.evil.textconv", evil],
    ["filter.evil.clean", evil],
    ["core.pager", evil],
    ["core.editor", evil],
    ["gpg.program", evil],
    ["log.showSignature", "true"],
  ] as const)
    git("config", key, value);
}

const gitEnvironment = {
  PATH: process.env.PATH,
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_AUTHOR_NAME: "a",
  GIT_AUTHOR_EMAIL: "a@example.org",
  GIT_COMMITTER_NAME: "a",
  GIT_COMMITTER_EMAIL: "a@example.org",
};

const granular = (sandbox_approval: boolean): ApprovalPolicy => ({
  granular: {
    sandbox_approval,
    rules: false,
    skill_approval: false,
    request_permissions: false,
    mcp_elicitations: false,
  },
});

const policies: readonly ApprovalPolicy[] = [...APPROVAL_POLICIES, granular(true), granular(false)];

async function play(
  mode: SandboxMode,
  policy: ApprovalPolicy,
  commands: readonly (readonly string[])[],
  opened = sandboxes.get(mode),
) {
  if (opened === undefined) throw new Error(`no sandbox for ${mode}`);
  const calls: ApprovalPlay["responses"][number] = commands.map((command) => ({
    shell: { command, timeout_ms: 60_000 },
  }));
  const { outputs } = await playApprovals({
    responses: [calls],
    cwd: opened.workspace,
    sandbox: opened.sandbox,
    situation: { policy, isRestricted: mode !== "danger-full-access", hasNetwork: false, canEscalate: false },
    // Where root looks at another user's files, git would refuse to look at all.
    environment: {
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
      HOME: "/tmp",
      GIT_EDITOR: join(opened.workspace, "evil"),
    },
  });
  const traces = await opened.sandbox.exec([
    "sh",
    "-c",
    `cat ${CANARY} 2>/dev/null; ls /tmp/written 2>/dev/null`,
  ]);
  return { outputs, traces: traces.stdout };
}

const otherUsers = OWNING_USERS.filter(({ uid }) => uid !== process.getuid?.());

const refused = /approval required by policy, but nobody is there to approve it/;

describe("what starts unasked in a hostile directory starts nothing else", () => {
  it("is what is known to be safe, every program of it", () => {
    for (const command of safe) expect(new CommandSafety(command).risk, command.join(" ")).toBe("safe");
    for (const command of [...starting, ...others])
      expect(new CommandSafety(command).risk, command.join(" ")).not.toBe("safe");
  });

  it.each(modes.flatMap((mode) => policies.map((policy) => [mode, policy] as const)))(
    "in %s under %j",
    { timeout: 120_000 },
    async (mode, policy) => {
      const { outputs, traces } = await play(mode, policy, safe);
      expect(traces).toBe("");
      expect(outputs).toHaveLength(safe.length);
      for (const output of outputs) expect(output).not.toMatch(refused);
    },
  );

  it.each(modes)(
    "and in %s whatever would is asked about under untrusted",
    { timeout: 120_000 },
    async (mode) => {
      const { outputs, traces } = await play(mode, "untrusted", [...starting, ...others]);
      expect(traces).toBe("");
      for (const output of outputs) expect(output).toMatch(refused);
    },
  );

  it.each(otherUsers)("for uid $uid too, and what would does", { timeout: 120_000 }, async (user) => {
    becomeHostUser(user);
    await using hostile = await temporaryDirectory();
    makeHostile(hostile.path);
    await giveToHostUser(hostile.path);
    await using opened = await openTestSandbox({ workspace: hostile.path });
    const { outputs, traces } = await play("workspace-write", "untrusted", safe, opened);
    expect(traces).toBe("");
    for (const output of outputs) expect(output).not.toMatch(refused);
    expect((await play("workspace-write", "never", starting, opened)).traces).not.toBe("");
  });

  it.each(starting.map((command) => [command.join(" "), command] as const))(
    "as it does where nobody has to be asked: %s",
    async (_name, command) => {
      // Where the repository is held too, what git would write on the way there keeps it from some of them.
      const { traces } = await play("danger-full-access", "never", [command]);
      expect(traces).not.toBe("");
    },
  );
});
