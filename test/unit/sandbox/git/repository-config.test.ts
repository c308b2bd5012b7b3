import { describe, expect, it } from "vitest";
import { readRepositoryConfig } from "../../../../src/sandbox/git/repository-config.js";

function read(text: string, home: string | null = "/home/a") {
  return readRepositoryConfig(Buffer.from(text, "latin1"), { directory: "/w/.git", home });
}

/** The paths as lines: their kind, `w` if they are in the work tree, and themselves. */
const lines = (text: string, home?: string | null) =>
  read(text, home).paths.map(({ path, isInWorkTree, kind }) => `${kind}${isInWorkTree ? " w" : ""} ${path}`);

const setting = (name: string, value: string) => {
  const parts = name.split(".");
  const [section = "", last = ""] = [parts[0], parts.at(-1)];
  const sub = parts.slice(1, -1).join(".");
  return `[${section}${sub === "" ? "" : ` "${sub}"`}]\n\t${last} = "${value}"\n`;
};

describe("the configuration of a repository", () => {
  it.each([
    ["include.path", "/etc/x", ["include /etc/x"]],
    ["include.path", "x", ["include /w/.git/x"]],
    ["includeIf.gitdir:/x.path", "~/x", ["include /home/a/x"]],
    ["include.path", "~b/x", []],
    ["include.path", "%(prefix)/x", []],
    ["include.path", "", []],
    ["core.hooksPath", "hooks", ["hooks w hooks"]],
    ["core.hooksPath", "/hooks", ["hooks /hooks"]],
    ["core.hooksPath", ".husky/_", ["hooks w .husky"]],
    ["core.hooksPath", "~/hooks", ["hooks /home/a/hooks"]],
    ["core.hooksPath", "~b/hooks", []],
    ["core.sshCommand", "ssh -i key", ["argument w ssh", "argument w key"]],
    ["core.editor", "bin/e /x $y %z -q", ["program w bin/e", "argument /x"]],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a shell reads it
    ["core.pager", "'/a b' $HOME/c; ${HOME}/d", ["program /a b", "argument /home/a/c", "argument /home/a/d"]],
    ["alias.x", "!/run/it now", ["program /run/it", "argument w now"]],
    ["core.other", "/bin/x", []],
    ["alias.x", "log src", []],
    ["alias.x", "rebase --exec ./check main", ["argument w ./check"]],
    ["init.templateDir", "~/template", ["hooks /home/a/template"]],
  ])("says by %s = %s what git obeys or runs", (name, value, expected) => {
    expect(lines(setting(name, value))).toEqual(expected);
  });

  it.each([
    ...["fsmonitor", "askPass", "gitProxy", "alternateRefsCommand"].map((name) => `core.${name}`),
    ...["sequence.editor", "diff.external", "diff.x.command", "diff.x.y.textconv", "filter.x.clean"],
    ...["filter.x.smudge", "filter.x.process", "merge.x.driver", "mergetool.x.cmd", "difftool.x.path"],
    ...["gpg.program", "gpg.ssh.program", "gpg.ssh.defaultKeyCommand", "credential.helper"],
    ...["credential.https://x.helper", "interactive.diffFilter", "pager.log", "uploadpack.packObjectsHook"],
    ...["remote.o.uploadpack", "remote.o.receivepack", "trailer.x.command", "trailer.x.cmd"],
    ...["sendemail.x.smtpserver", "sendemail.toCmd", "browser.x.cmd", "browser.x.path", "man.x.cmd"],
    ...["man.x.path", "submodule.x.update", "hook.x.command", "tar.tar.xz.command", "guitool.x y.cmd"],
    ...["imap.tunnel", "instaweb.httpd", "instaweb.modulePath", "gc.recentObjectsHook", "svn.authorsProg"],
    ...["lfs.customtransfer.x.path", "lfs.customtransfer.x.args", "lfs.extension.x.clean"],
    ...["lfs.extension.x.smudge", "annex.freezecontent-command", "remote.o.annex-post-store-hook"],
  ])("has a program in %s", (name) => {
    expect(lines(setting(name, "/run/it"))).toEqual(["program /run/it"]);
  });

  it("leaves paths of a home directory out where there is none", () => {
    expect(lines(setting("include.path", "~/x"), null)).toEqual([]);
  });

  it("says where the work tree is, by the last value, and which hash it uses", () => {
    const empty = { paths: [], workTree: null, usesSha256: false };
    expect(read("")).toEqual(empty);
    const trees = setting("core.worktree", "/a") + setting("core.worktree", "/b");
    expect(read(trees + setting("core.worktree", "")).workTree).toBe("/b");
    expect(read(setting("extensions.objectFormat", "SHA256")).usesSha256).toBe(true);
    expect(read(setting("extensions.objectFormat", "sha1")).usesSha256).toBe(false);
  });
});
