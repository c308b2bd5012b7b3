import type { BytePath } from "./byte-paths.js";
import { type GitSetting, parseGitConfig } from "./git-config.js";
import { commandSettings, hookDirectorySettings } from "./obeyed-settings.js";

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
