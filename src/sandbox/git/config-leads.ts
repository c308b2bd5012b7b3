import { type GitSetting, parseGitConfig } from "./git-config.js";
import type { BytePath } from "./host-names.js";

/** A place that git obeys, or that a setting lets git run. */
interface ConfigLead {
  /** Absolute; relative to the work tree where `isInWorkTree`. */
  path: BytePath;
  isInWorkTree: boolean;
  /**
   * "include": a configuration file, there or not; "hooks": a directory, there or not; "program": what a command begins with,
   * there or not; "argument": a file that a command names, if it is there.
   */
  kind: "include" | "hooks" | "program" | "argument";
}

export interface ConfigMeaning {
  leads: ConfigLead[];
  /** `core.worktree` as it is written. */
  workTree: BytePath | null;
  usesSha256: boolean;
}

/** Settings whose value git hands to a shell or starts, without being asked to. */
const COMMANDS = [
  /^core\.(?:fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)$/,
  /^sequence\.editor$/,
  /^diff\.(?:.*\.)?(?:external|command|textconv)$/,
  /^filter\..*\.(?:clean|smudge|process)$/,
  /^merge\..*\.driver$/,
  /^(?:merge|diff)tool\..*\.(?:cmd|path)$/,
  /^gpg\.(?:.*\.)?(?:program|defaultkeycommand)$/,
  /^credential\.(?:.*\.)?helper$/,
  /^interactive\.difffilter$/,
  /^pager\./,
  /^alias\./,
  /^uploadpack\.packobjectshook$/,
  /^remote\..*\.(?:uploadpack|receivepack)$/,
  /^trailer\..*\.(?:command|cmd)$/,
  /^sendemail\..*(?:cmd|smtpserver)$/,
  /^browser\..*\.(?:cmd|path)$/,
  /^man\..*\.(?:cmd|path)$/,
  /^submodule\..*\.update$/,
  /^hook\..*\.command$/,
];

/** What a configuration file in `directory` says of other files. Conditions of an `includeIf` are taken to hold. */
export function meaningOf(
  bytes: Buffer,
  { directory, home }: { directory: BytePath; home: BytePath | null },
): ConfigMeaning {
  const settings = parseGitConfig(bytes.toString("latin1"));
  const values = (name: string) => settings.filter((setting) => setting.name === name).map(textOf);
  const expand = (path: string) => expandHome(path, home);
  return {
    leads: settings.flatMap((setting) => leadsOf(setting, { directory, expand })),
    workTree: values("core.worktree").findLast((value) => value !== "") ?? null,
    usesSha256: values("extensions.objectformat").some((value) => value.toLowerCase() === "sha256"),
  };
}

interface Setting {
  directory: BytePath;
  expand(path: string): string | null;
}

function leadsOf(setting: GitSetting, { directory, expand }: Setting): ConfigLead[] {
  const { name } = setting;
  const value = textOf(setting);
  if (value === "") return [];
  if (/^include(?:if\..*)?\.path$/.test(name)) {
    const path = expand(value);
    return path === null ? [] : [{ path: absolute(path, directory), isInWorkTree: false, kind: "include" }];
  }
  if (name === "core.hookspath") {
    const path = expand(value);
    return path === null ? [] : [{ path, isInWorkTree: !path.startsWith("/"), kind: "hooks" }];
  }
  return COMMANDS.some((pattern) => pattern.test(name)) ? commandLeads(value, expand) : [];
}

/** The words of a command that could be files, as far as they can be told without being a shell. */
function commandLeads(command: string, expand: Setting["expand"]): ConfigLead[] {
  const words = command.replace(/^!/, "").match(/(?:[^\s"'`;&|()<>]|"[^"]*"|'[^']*')+/g) ?? [];
  return words.flatMap((word, at): ConfigLead[] => {
    const path = expand(word.replace(/["']/g, "").replace(/^\$\{?HOME\}?(?=\/)/, "~"));
    if (path === null || !/^[^$%-]/.test(path)) return [];
    const kind = at === 0 && path.includes("/") ? "program" : "argument";
    return [{ path, isInWorkTree: !path.startsWith("/"), kind }];
  });
}

function textOf({ value }: GitSetting): string {
  return value ?? "";
}

/** Null for what lies in git's own installation, or in a directory that only the user database knows. */
function expandHome(path: string, home: BytePath | null): string | null {
  if (path.startsWith("~/")) return home === null ? null : `${home}${path.slice(1)}`;
  return path.startsWith("~") || path.startsWith("%(") ? null : path;
}

function absolute(path: string, directory: BytePath): BytePath {
  return path.startsWith("/") ? path : `${directory}/${path}`;
}
