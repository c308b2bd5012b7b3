import { posix } from "node:path";

/** Places where settings are looked for, and the task given to the agent. */
export interface SettingPlaces {
  cwd: string;
  /** The home directories of root, of the agent and of the tests. Those in /home need not be named. */
  homes: readonly string[];
  /** Whole directories of settings, such as `$XDG_CONFIG_HOME`. */
  settings: readonly string[];
  /** The task as the agent got it. */
  instruction: string;
}

/**
 * Whether a program reads its settings there when it starts: hidden files of a home, `~/.config`, files that are named like
 * settings in the hidden directories of a home, and the settings of clients and tools in /etc. Settings of services are work.
 */
export function isSetting(path: string, places: SettingPlaces): boolean {
  if (places.settings.some((directory) => path === directory || path.startsWith(`${directory}/`)))
    return true;
  const name = nameInHome(path, places);
  if (name !== null && isSettingOfHome(name, { isWork: isWorkInHome(path, places) })) return true;
  if (path.startsWith(`${places.cwd}/`)) return false;
  return ofTools.some((pattern) => pattern.test(path));
}

/** The path of a program in one of the directories of a home that installers put into PATH. */
export function isProgramOfHome(path: string, places: Pick<SettingPlaces, "homes">): boolean {
  const name = nameInHome(path, places);
  return name !== null && /^(?:\.local\/|\.cargo\/|\.bun\/|\.deno\/|go\/)?bin\/[^/]+$/.test(name);
}

/**
 * Whether the instruction names a path, the directory that it is in, or the hidden file or directory of the home: then it is what the
 * agent was asked to make.
 */
export function isNamed(path: string, { instruction, ...places }: SettingPlaces): boolean {
  const name = nameInHome(path, places);
  const [first = ""] = name?.split("/") ?? [];
  const isDeep = name === null ? path.split("/").length > 3 : name.includes("/");
  const wanted = [
    path,
    ...(isDeep ? [posix.dirname(path)] : []),
    ...(first.startsWith(".") && first !== ".config" ? [first] : []),
    ...(name === null ? [] : [`~/${name}`]),
  ];
  return wanted.some((one) => hasWord(instruction, one));
}

/** Whether a text has this, and not only as a part of a longer name or path. */
export function hasWord(text: string, word: string): boolean {
  const escaped = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`(?<![\\w.-])${escaped}(?![\\w-]|/\\w)`).test(text);
}

/** Relative to the home that a path is in; null for other paths. */
function nameInHome(path: string, { homes }: Pick<SettingPlaces, "homes">): string | null {
  const [usual] = /^\/home\/[^/]+(?=\/)/.exec(path) ?? [];
  for (const home of usual === undefined ? homes : [...homes, usual]) {
    const start = home === "/" ? "/" : `${home}/`;
    if (path.startsWith(start)) return path.slice(start.length);
  }
  return null;
}

/** In a home that is the working directory, hidden files may as well be the project's. */
function isWorkInHome(path: string, { cwd, homes }: SettingPlaces): boolean {
  return homes.includes(cwd) && path.startsWith(`${cwd}/`);
}

function isSettingOfHome(name: string, { isWork }: { isWork: boolean }): boolean {
  if (/^\.config(?:\/|$)/.test(name)) return true;
  if (isWork || !name.startsWith(".") || keptInHomes.test(name)) return false;
  // A name that is no text is that of no program's settings.
  if (!name.includes("/")) return !history.test(name) && !name.includes("\uFFFD");
  return namedLikeSettings.test(name) && !ofStores.test(name);
}

/** Files that programs write there for themselves, and whose contents cannot influence a grade. */
const history =
  /(?:history|hist|-hsts|viminfo|lesshst|\.lock|\.log|\.pid|\.rnd|\.Xauthority|\.sudo_as_admin_successful)$/;

/** Work and installed software that happens to be hidden. */
const keptInHomes =
  /^\.(?:cache|local|git|github|venv|virtualenvs|rustup|nvm|pyenv|rbenv|nodenv|jenv|goenv|asdf|sdkman|volta|fnm|opam|ghcup|elan|juliaup|dotnet|oh-my-zsh|vscode[^/]*|ssh\/(?:authorized_keys|known_hosts))(?:\/|$)/;

const namedLikeSettings =
  /^\.[^/]+\/(?:(?:[^/]+\/){0,2}(?:[^/]*\.d|hooks|startup|init)\/[^/]+|(?:[^/]+\/)?(?:[^/.]*(?:config|settings|profile|environment)[^/]*|[^/.]*rc|env|[^/.][^/]*\.(?:conf|cfg|ini|toml|properties|gradle|kts|sbt|xml|ya?ml|json|sh|jl|lua)))$/i;

/** Downloaded or installed files are data, however they are named. */
const ofStores =
  /\/(?:repository|caches?|packages?|pkgs|registry|versions|installs|candidates|toolchains|store|wrapper|dists|compiled|models|extensions|node_modules|site-packages|dist-packages|_cacache|_npx|_logs|logs?|tmp|envs)\//;

/**
 * Settings of clients, of tools that build, and of what installs packages. Other files of /etc are those of services, and
 * the agent's to change.
 */
const ofTools = [
  // Downloads.
  /^\/(?:etc|usr\/(?:local\/)?etc)\/\.?(?:curlrc|wgetrc|wget2rc|netrc|aria2|axelrc|proxychains[^/]*)(?:\/|$)/,
  // Packages of the system. Alpine's list of what is installed is no setting.
  /^\/etc\/(?:dpkg|debconf\.conf|ucf\.conf|needrestart|ca-certificates(?:\.conf)?|yum[^/]*|dnf|zypp|rpm|pacman[^/]*|opkg|eopkg)(?:\/|$)/,
  /^\/etc\/apk\/(?!(?:world|arch)$).+/,
  // Packages of languages.
  /^\/(?:etc|usr\/(?:local\/)?etc)\/(?:pip|pip\.conf|npmrc|yarnrc[^/]*|gemrc|bundle|condarc|conda|uv|pypoetry|composer|NuGet|opt\/NuGet|cargo|pnpm)(?:\/|$)/,
  // Tools that compile, build and run.
  /^\/etc\/(?:java[^/]*|maven[^/]*|mavenrc|gradle[^/]*|ant[^/]*|sbt|scala|groovy[^/]*|python[^/]*|ruby[^/]*|irbrc|julia|R|ghc[^/]*|clang[^/]*|ccache\.conf|distcc|dotnet|mono|php\/[^/]+\/cli)(?:\/|$)/,
  /\/(?:apache-)?(?:maven|gradle|ant|sbt)[^/]*\/(?:conf|etc|init\.d|lib\/ext)(?:\/|$)/,
  /\/jre\/lib\/(?:ext|endorsed)\//,
  /\/go\/go\.env$/,
  // Terminals, editors, debuggers, and clients of remote services.
  /^\/etc\/(?:inputrc|fish|csh[^/]*|ksh[^/]*|tmux\.conf|screenrc|vim|nanorc|emacs|gdb|lldbinit|gitattributes|mercurial|subversion|sudo\.conf|xdg|environment\.d|ssh\/(?:ssh_config|sshrc)[^/]*)(?:\/|$)/,
];
