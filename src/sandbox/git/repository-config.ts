import type { BytePath } from "./byte-paths.js";

/** A path in a git configuration file that git obeys or runs. It need not exist. */
export interface ConfigPath {
  /** Relative to the work tree when `isInWorkTree`, else absolute. */
  path: BytePath;
  isInWorkTree: boolean;
  /** "program": the first word of a command; "argument": a further word, which may not be a file. */
  kind: "include" | "hooks" | "program" | "argument";
}

/** The settings of one configuration file that matter for protecting its repository. */
export interface RepositoryConfig {
  paths: ConfigPath[];
  /** `core.worktree` as written. */
  workTree: BytePath | null;
  usesSha256: boolean;
}

/** Parses a configuration file in `directory`. Treats the condition of every `includeIf` as true. */
export function readRepositoryConfig(
  bytes: Buffer,
  { directory, home }: { directory: BytePath; home: BytePath | null },
): RepositoryConfig {
  return configOf(parseGitConfig(bytes.toString("latin1")), { directory, home });
}

/** The same for settings that are in no file; then paths are relative to `directory`. */
export function configOf(
  settings: readonly GitSetting[],
  { directory, home }: { directory: BytePath; home: BytePath | null },
): RepositoryConfig {
  const values = (name: string) => settings.filter((setting) => setting.name === name).map(textOf);
  const expand = (path: string) => expandHome(path, home);
  return {
    paths: settings.flatMap((setting) => pathsIn(setting, { directory, expand })),
    workTree: values("core.worktree").findLast((value) => value !== "") ?? null,
    usesSha256: values("extensions.objectformat").some((value) => value.toLowerCase() === "sha256"),
  };
}

interface PathContext {
  directory: BytePath;
  expand(path: string): string | null;
}

function pathsIn(setting: GitSetting, { directory, expand }: PathContext): ConfigPath[] {
  const { name } = setting;
  const value = textOf(setting);
  if (value === "") return [];
  if (/^include(?:if\..*)?\.path$/.test(name)) {
    const path = expand(value);
    return path === null ? [] : [{ path: absolute(path, directory), isInWorkTree: false, kind: "include" }];
  }
  if (hookDirectorySettings.some((pattern) => pattern.test(name))) {
    // The scripts in husky's directory `_` run those of the same names beside it.
    const path = expand(value.replace(/(?<=[^/])\/_\/*$/, ""));
    return path === null ? [] : [{ path, isInWorkTree: !path.startsWith("/"), kind: "hooks" }];
  }
  if (!commandSettings.some((pattern) => pattern.test(name))) return [];
  const paths = pathsInCommand(value, expand);
  // An alias that does not begin with "!" is one of git's own commands, some of which take a program as an argument.
  const isOwnCommand = name.startsWith("alias.") && !value.startsWith("!");
  return isOwnCommand ? paths.filter(({ path }) => path.includes("/")) : paths;
}

/** The words of a command that could be paths, as far as this can be decided without a shell. */
function pathsInCommand(command: string, expand: PathContext["expand"]): ConfigPath[] {
  const words = command.replace(/^!/, "").match(/(?:[^\s"'`;&|()<>]|"[^"]*"|'[^']*')+/g) ?? [];
  return words.flatMap((word, at): ConfigPath[] => {
    const path = expand(word.replace(/["']/g, "").replace(/^\$\{?HOME\}?(?=\/)/, "~"));
    if (path === null || !/^[^$%-]/.test(path)) return [];
    const kind = at === 0 && path.includes("/") ? "program" : "argument";
    return [{ path, isInWorkTree: !path.startsWith("/"), kind }];
  });
}

function textOf({ value }: GitSetting): string {
  return value ?? "";
}

/** Null for `%(prefix)/…`, git's own installation, and `~user/…`, which only the user database knows. */
function expandHome(path: string, home: BytePath | null): string | null {
  if (path.startsWith("~/")) return home === null ? null : `${home}${path.slice(1)}`;
  return path.startsWith("~") || path.startsWith("%(") ? null : path;
}

function absolute(path: string, directory: BytePath): BytePath {
  return path.startsWith("/") ? path : `${directory}/${path}`;
}

/**
 * Settings whose value git or a part of it runs, by itself or when it is called, directly or through a shell. From the
 * documentation of git 2.55, of Git LFS 3.7 and of git-annex. Names are in lower case, but for subsections.
 */
export const commandSettings: readonly RegExp[] = [
  /^alias\./,
  /^browser\..*\.(?:cmd|path)$/,
  /^core\.(?:alternaterefscommand|askpass|editor|fsmonitor|gitproxy|pager|sshcommand)$/,
  /^credential\.(?:.*\.)?helper$/,
  /^diff\.(?:.*\.)?(?:command|external|textconv)$/,
  /^(?:difftool|mergetool)\..*\.(?:cmd|path)$/,
  /^filter\..*\.(?:clean|process|smudge)$/,
  /^gc\.recentobjectshook$/,
  /^gpg\.(?:.*\.)?(?:program|defaultkeycommand)$/,
  /^guitool\..*\.cmd$/,
  /^hook\..*\.command$/,
  /^imap\.tunnel$/,
  /^instaweb\.(?:httpd|modulepath)$/,
  /^interactive\.difffilter$/,
  /^man\..*\.(?:cmd|path)$/,
  /^merge\..*\.driver$/,
  /^pager\./,
  /^remote\..*\.(?:receivepack|uploadpack)$/,
  /^sendemail\..*(?:cmd|smtpserver)$/,
  /^sequence\.editor$/,
  /^submodule\..*\.update$/,
  /^svn\.authorsprog$/,
  /^tar\..*\.command$/,
  /^trailer\..*\.(?:cmd|command)$/,
  /^uploadpack\.packobjectshook$/,
  /^lfs\.customtransfer\..*\.(?:args|path)$/,
  /^lfs\.extension\..*\.(?:clean|smudge)$/,
  /^annex\..*-command$/,
  /^remote\..*\.annex-.*(?:command|hook|rsh-program)$/,
];

/** Settings that name a directory with hooks in it: git runs them, or copies them into each new repository. */
const hookDirectorySettings: readonly RegExp[] = [/^core\.hookspath$/, /^init\.templatedir$/];

/** One setting of a git configuration file. */
export interface GitSetting {
  /** `section.subsection.key`, with section and key in lower case. */
  name: string;
  value: string | null;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", b: "\b" };

/** Parses a file as git-config(1) describes it. Skips malformed parts to find all settings. */
export function parseGitConfig(text: string): GitSetting[] {
  const settings: GitSetting[] = [];
  let section = "";
  let rest = text.replace(/^\uFEFF/, "");
  while (rest !== "") {
    rest = rest.replace(/^\s+/, "");
    const header = /^\[([-.0-9A-Za-z]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]/.exec(rest);
    const key = /^([A-Za-z][-0-9A-Za-z]*)[ \t]*(=?)/.exec(rest);
    if (header !== null) {
      section = sectionName(header[1] ?? "", header[2]);
      rest = rest.slice(header[0].length);
    } else if (key !== null && !/^[#;]/.test(rest)) {
      const hasValue = key[2] === "=";
      const { value, length } = hasValue ? readValue(rest, key[0].length) : { value: null, length: 0 };
      settings.push({ name: `${section}.${(key[1] ?? "").toLowerCase()}`, value });
      rest = hasValue ? rest.slice(length) : nextLine(rest);
    } else {
      rest = nextLine(rest);
    }
  }
  return settings;
}

function sectionName(name: string, subsection: string | undefined): string {
  if (subsection === undefined) return name.toLowerCase();
  return `${name.toLowerCase()}.${subsection.replace(/\\(.)/g, "$1")}`;
}

function nextLine(text: string): string {
  const end = text.indexOf("\n");
  return end < 0 ? "" : text.slice(end + 1);
}

/** Reads from `start` to the end of the line; a backslash at its end continues it on the next line. */
function readValue(text: string, start: number): { value: string; length: number } {
  const first = start + (/^[ \t]*/.exec(text.slice(start))?.[0].length ?? 0);
  let value = "";
  /** Spaces are kept only if something follows them. */
  let spaces = "";
  let isQuoted = false;
  let isComment = false;
  let at = first;
  const add = (piece: string) => {
    value += spaces + piece;
    spaces = "";
  };
  for (; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character === "\n") break;
    if (isComment || character === "\r") continue;
    if (character === "\\") {
      at += text[at + 1] === "\r" && text[at + 2] === "\n" ? 2 : 1;
      const escaped = text[at] ?? "";
      if (escaped !== "\n") add(ESCAPES[escaped] ?? escaped);
    } else if (character === '"') {
      isQuoted = !isQuoted;
      add("");
    } else if (!isQuoted && (character === "#" || character === ";")) isComment = true;
    else if (!isQuoted && (character === " " || character === "\t")) spaces += character;
    else add(character);
  }
  return { value, length: at };
}
