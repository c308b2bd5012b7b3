import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandSettings, readRepositoryConfig } from "../../../../src/sandbox/git/repository-config.js";
import { type TemporaryDirectory, temporaryDirectory } from "../../../support/sandbox.js";

let folder: TemporaryDirectory;
let made: string;

/** A repository with two commits, a branch in conflict with the checked-out one, and a file that is not committed. */
beforeAll(async () => {
  folder = await temporaryDirectory();
  made = join(folder.path, "made");
  mkdirSync(made);
  const write = (name: string, text: string) => writeFileSync(join(made, name), text);
  git(made, "init", "-q", "-b", "main");
  mkdirSync(join(made, "tools"));
  write("tools/run", `#!/bin/sh\n: >"$(dirname "$0")/../canary"\nexit 1\n`);
  chmodSync(join(made, "tools/run"), 0o755);
  write(".gitattributes", "*.x filter=d diff=d merge=d\n");
  write("a.x", "one\n");
  write("a.txt", "one\n");
  git(made, "add", ".");
  git(made, "commit", "-q", "-m", "first");
  git(made, "checkout", "-q", "-b", "other");
  for (const name of ["a.x", "a.txt"]) write(name, "other\n");
  git(made, "commit", "-q", "-a", "-m", "other");
  git(made, "checkout", "-q", "main");
  for (const name of ["a.x", "a.txt"]) write(name, "main\n");
  git(made, "commit", "-q", "-a", "-m", "second");
});
afterAll(() => folder[Symbol.asyncDispose]());

function git(cwd: string, ...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return gitWith(cwd, args);
}

function gitWith(cwd: string, args: readonly string[], input = "", settings: Record<string, string> = {}) {
  const names = Object.keys(settings);
  const variables = names.flatMap((name, at) => [
    [`GIT_CONFIG_KEY_${at}`, name],
    [`GIT_CONFIG_VALUE_${at}`, settings[name]],
  ]);
  const env = {
    ...{
      PATH: process.env.PATH,
      HOME: folder.path,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
      LC_ALL: "C",
    },
    ...{ GIT_AUTHOR_NAME: "a", GIT_AUTHOR_EMAIL: "a@b", GIT_COMMITTER_NAME: "a", GIT_COMMITTER_EMAIL: "a@b" },
    ...{ GIT_CONFIG_COUNT: String(names.length), ...Object.fromEntries(variables) },
  };
  return spawnSync("git", args, { cwd, env, input, encoding: "utf8", timeout: 20_000 });
}

interface Case {
  setting: string;
  value?: string;
  /** Further settings without which git does not come to it. */
  others?: Record<string, string>;
  /** Goes before. */
  first?: readonly string[];
  args: readonly string[];
  input?: string;
  change?: boolean;
}

const credential = "protocol=https\nhost=x.invalid\n\n";
const cases: readonly Case[] = [
  { setting: "alias.z", value: "!tools/run", args: ["z"] },
  { setting: "browser.mine.cmd", others: { "web.browser": "mine" }, args: ["web--browse", "x"] },
  { setting: "browser.w3m.path", others: { "web.browser": "w3m" }, args: ["web--browse", "x"] },
  { setting: "core.askPass", args: ["credential", "fill"], input: credential },
  { setting: "core.editor", args: ["commit", "--allow-empty"] },
  { setting: "core.fsmonitor", args: ["status"] },
  { setting: "core.gitProxy", args: ["ls-remote", "git://x.invalid/y"] },
  { setting: "core.sshCommand", args: ["ls-remote", "ssh://x.invalid/y"] },
  { setting: "credential.helper", value: "!$PWD/tools/run", args: ["credential", "fill"], input: credential },
  {
    setting: "credential.https://x.invalid.helper",
    value: "!$PWD/tools/run",
    args: ["credential", "fill"],
    input: credential,
  },
  { setting: "diff.external", args: ["diff"], change: true },
  { setting: "diff.d.command", args: ["diff"], change: true },
  { setting: "diff.d.textconv", args: ["diff"], change: true },
  { setting: "difftool.mine.cmd", args: ["difftool", "-y", "--tool=mine"], change: true },
  { setting: "difftool.kdiff3.path", args: ["difftool", "-y", "--tool=kdiff3"], change: true },
  { setting: "filter.d.clean", args: ["add", "a.x"], change: true },
  { setting: "filter.d.smudge", args: ["checkout", "HEAD~", "--", "a.x"] },
  { setting: "filter.d.process", args: ["add", "a.x"], change: true },
  { setting: "gpg.program", args: ["commit", "-S", "--allow-empty", "-m", "x"] },
  {
    setting: "gpg.x509.program",
    others: { "gpg.format": "x509" },
    args: ["commit", "-S", "--allow-empty", "-m", "x"],
  },
  {
    setting: "gpg.ssh.program",
    others: { "gpg.format": "ssh", "user.signingKey": "a.txt" },
    args: ["commit", "-S", "--allow-empty", "-m", "x"],
  },
  {
    setting: "gpg.ssh.defaultKeyCommand",
    others: { "gpg.format": "ssh" },
    args: ["commit", "-S", "--allow-empty", "-m", "x"],
  },
  { setting: "man.mine.cmd", others: { "man.viewer": "mine" }, args: ["help", "-m", "status"] },
  { setting: "man.man.path", others: { "man.viewer": "man" }, args: ["help", "-m", "status"] },
  { setting: "merge.d.driver", args: ["merge", "-q", "other"] },
  {
    setting: "mergetool.mine.cmd",
    first: ["merge", "-q", "other"],
    args: ["mergetool", "-y", "--tool=mine"],
  },
  {
    setting: "mergetool.kdiff3.path",
    first: ["merge", "-q", "other"],
    args: ["mergetool", "-y", "--tool=kdiff3"],
  },
  { setting: "remote.o.uploadpack", others: { "remote.o.url": "." }, args: ["fetch", "o"] },
  { setting: "remote.o.receivepack", others: { "remote.o.url": "." }, args: ["push", "o", "main:new"] },
  { setting: "sequence.editor", args: ["rebase", "-i", "HEAD~"] },
  { setting: "tar.mine.command", args: ["archive", "--format=mine", "HEAD"] },
  { setting: "trailer.t.command", args: ["interpret-trailers", "--trailer", "t=x"], input: "x\n" },
  { setting: "trailer.t.cmd", args: ["interpret-trailers", "--trailer", "t=x"], input: "x\n" },
];

/** These need a terminal, a newer git, or a part of git or another program that need not be installed. */
const notTried = [
  ...[
    "core.alternateRefsCommand",
    "core.pager",
    "pager.log",
    "gc.recentObjectsHook",
    "guitool.x.cmd",
    "hook.x.command",
  ],
  ...[
    "imap.tunnel",
    "instaweb.httpd",
    "interactive.diffFilter",
    "sendemail.toCmd",
    "submodule.x.update",
    "svn.authorsProg",
  ],
  ...["uploadpack.packObjectsHook", "lfs.customtransfer.x.path", "lfs.extension.x.clean", "annex.x-command"],
  ...["remote.o.annex-x-hook"],
];

describe("a setting that is said to name a program", () => {
  it.each(cases)("is obeyed by git: $setting", (one) => {
    const work = join(folder.path, one.setting.replace(/\W/g, "-"));
    cpSync(made, work, { recursive: true });
    if (one.first !== undefined) gitWith(work, one.first, "", { "merge.d.driver": "false" });
    if (one.change) for (const name of ["a.x", "a.txt"]) writeFileSync(join(work, name), "changed\n");
    const { value = join(work, "tools/run") } = one;
    const { stderr } = gitWith(work, one.args, one.input, { ...one.others, [one.setting]: value });
    expect(existsSync(join(work, "canary")), stderr).toBe(true);
    expect(namedBy(one.setting)).toEqual(["tools/run"]);
  });

  it("is one of the list, and each of the list is tried or cannot be", () => {
    const all = [...cases.map(({ setting }) => setting), ...notTried];
    for (const setting of notTried) expect(namedBy(setting), setting).toEqual(["tools/run"]);
    for (const pattern of commandSettings)
      expect(
        all.filter((setting) => pattern.test(lowered(setting))),
        String(pattern),
      ).not.toEqual([]);
  });

  it("is hooks in a template that git copies", () => {
    const template = join(folder.path, "template");
    mkdirSync(join(template, "hooks"), { recursive: true });
    writeFileSync(join(template, "hooks/post-commit"), "x");
    gitWith(folder.path, ["init", "-q", "new"], "", { "init.templateDir": template });
    expect(readFileSync(join(folder.path, "new/.git/hooks/post-commit"), "utf8")).toBe("x");
  });
});

function lowered(setting: string): string {
  const [first, last] = [setting.indexOf("."), setting.lastIndexOf(".")];
  return (
    setting.slice(0, first).toLowerCase() + setting.slice(first, last) + setting.slice(last).toLowerCase()
  );
}

/** What brig takes from a configuration with this setting. */
function namedBy(setting: string): string[] {
  const [first, last] = [setting.indexOf("."), setting.lastIndexOf(".")];
  const sub = first === last ? "" : ` "${setting.slice(first + 1, last)}"`;
  const text = `[${setting.slice(0, first)}${sub}]\n\t${setting.slice(last + 1)} = "!tools/run"\n`;
  return readRepositoryConfig(Buffer.from(text), { directory: "/w", home: null }).paths.map(
    ({ path }) => path,
  );
}
