import { join } from "node:path";
import type { GitSetting } from "./repository-config.js";

/** Configuration of git that is the user's or the machine's own, and so applies to every repository. */
export interface UserGitConfig {
  /** Absolute paths; some may not exist. */
  files: readonly string[];
  /** Settings in environment variables. */
  settings: readonly GitSetting[];
}

/** Possible paths of the system's configuration. The one that git uses was compiled into it. */
const SYSTEM_FILES = [
  "/etc/gitconfig",
  "/usr/local/etc/gitconfig",
  "/opt/homebrew/etc/gitconfig",
  "/opt/local/etc/gitconfig",
  "/Library/Developer/CommandLineTools/usr/share/git-core/gitconfig",
];
const MAX_SETTINGS = 1000;

/**
 * All that git may read besides the repository. Variables that keep it from reading some of these are not obeyed here:
 * git may be started without them.
 */
export function userGitConfig(
  variables: Readonly<Record<string, string | undefined>>,
  home: string | null,
): UserGitConfig {
  const { GIT_CONFIG_GLOBAL, GIT_CONFIG_SYSTEM, XDG_CONFIG_HOME } = variables;
  const files = [
    ...SYSTEM_FILES,
    GIT_CONFIG_SYSTEM,
    ...[XDG_CONFIG_HOME, home && join(home, ".config")].map(
      (directory) => directory && join(directory, "git/config"),
    ),
    home && join(home, ".gitconfig"),
    GIT_CONFIG_GLOBAL,
  ].filter((file) => typeof file === "string" && file.startsWith("/"));
  return { files: [...new Set(files)] as string[], settings: settingsIn(variables) };
}

function settingsIn(variables: Readonly<Record<string, string | undefined>>): GitSetting[] {
  const count = Math.min(Number(variables.GIT_CONFIG_COUNT ?? 0) || 0, MAX_SETTINGS);
  return Array.from({ length: count }, (_, at) => ({
    name: settingName(variables[`GIT_CONFIG_KEY_${at}`] ?? ""),
    value: variables[`GIT_CONFIG_VALUE_${at}`] ?? null,
  }));
}

/** Section and key in lower case, and the subsection as it is. */
function settingName(name: string): string {
  const [first, last] = [name.indexOf("."), name.lastIndexOf(".")];
  return name.slice(0, first).toLowerCase() + name.slice(first, last) + name.slice(last).toLowerCase();
}
