import { posix } from "node:path";
import { isOnSearchPath } from "./search-path.js";
import { isProgramOfHome, isSetting, type SettingPlaces } from "./settings.js";
import { topModuleOf } from "./stand-in-modules.js";

/** Treatment of a path that the agent has changed, before tests run in its container. */
export type Treatment =
  /** The path becomes what it was; a new path is removed. */
  | "restore"
  /** Like `restore`, but a new path stays, unless it stands in for a file of the image. */
  | "restore-old"
  /** Users that the image has keep their numbers. */
  | "keep-users"
  /** A package among whose files it is, is removed if it makes itself a plugin of pytest. */
  | "refuse-plugin"
  /** A program of the image becomes what it was; anything else stays. */
  | "restore-program"
  /** In a repository, neither links nor files that name another directory may lead out of it. */
  | "keep-in-repository"
  /** Settings become what they were, unless the agent was asked to change them. */
  | "restore-settings"
  /** A program in a directory of hooks becomes what it was. */
  | "restore-hook"
  /** A new module is removed if it is found in place of one that Python, pytest or the image has. */
  | "remove-stand-in";

/** The agent's working places, and the directories in which tests find programs. */
export interface SharedPlaces extends SettingPlaces {
  /** The working directory, below which files are the agent's own. */
  cwd: string;
  /** Absolute paths of the declared artifacts. */
  artifacts: readonly string[];
  /** The directories of PATH. */
  programs: readonly string[];
}

/** Null for what stays as the agent left it. */
export function treatmentOf(path: string, places: SharedPlaces): Treatment | null {
  if (isDeclared(path, places)) return null;
  if (hooksAnywhere.some((pattern) => pattern.test(path)) || shadowsPytest(path, places)) return "restore";
  if (pluginList.test(path)) return "refuse-plugin";
  if (ofRepository.test(path)) return "keep-in-repository";
  if (topModuleOf(path, places) !== null) return "remove-stand-in";
  const isProgram = isProgramFile(path, places);
  if (isBelow(path, places.cwd) && !isProgram) return isSetting(path, places) ? "restore-settings" : null;
  if (usersOfSystem.test(path)) return "keep-users";
  if (ofSystem.some((pattern) => pattern.test(path))) return "restore";
  if (isProgram) return readBesidePrograms.test(path) ? "restore" : "restore-old";
  if (isSetting(path, places)) return "restore-settings";
  if (isOnSearchPath(path) || replaceable.some((pattern) => pattern.test(path))) return "restore-old";
  if (inHookDirectory.test(path)) return "restore-hook";
  return ofLibraries.test(path) ? "restore-program" : null;
}

/** Whether it is in a directory of PATH, or in one that installers put there for a user. */
export function isProgramFile(path: string, places: SharedPlaces): boolean {
  const isOnPath = !isBelow(path, places.cwd) && places.programs.includes(posix.dirname(path));
  return isOnPath || isProgramOfHome(path, places);
}

/** `python -m pytest` looks in the working directory first. */
function shadowsPytest(path: string, { cwd }: SharedPlaces): boolean {
  return isBelow(path, cwd) && /^_?pytest(?:\.[^/]*)?(?:\/|$)/.test(path.slice(cwd.length + 1));
}

/** The directories of a PATH in which programs of the image can be: absolute, and neither temporary nor the agent's own. */
export function trustedDirectories(path: string, { cwd }: Pick<SharedPlaces, "cwd">): string[] {
  const directories = path.split(":").map((directory) => posix.normalize(directory).replace(/(.)\/$/, "$1"));
  const trusted = directories.filter(
    (directory) =>
      directory.startsWith("/") && !/^\/(?:var\/)?tmp(?:\/|$)/.test(directory) && !isBelow(directory, cwd),
  );
  return [...new Set(trusted)];
}

/** A whole working directory is what the agent worked in rather than its work, so hooks in it are not exempt. */
function isDeclared(path: string, { artifacts, cwd }: SharedPlaces): boolean {
  return artifacts.some(
    (artifact) =>
      path === artifact || (isBelow(path, artifact) && artifact !== cwd && !isBelow(cwd, artifact)),
  );
}

function isBelow(path: string, directory: string): boolean {
  return directory !== "/" && path.startsWith(`${directory}/`);
}

/** Files that programs obey wherever they find them, also in the working directory. */
const hooksAnywhere = [
  // Python and pytest load these modules without being asked to.
  /\/(?:conftest|sitecustomize|usercustomize)(?:\.[^/]*)?(?:\/|$)/,
  /\.pth$/,
  // An interpreter obeys it if it lies beside it.
  /\._pth$/,
  /\/\.?pytest\.ini$/,
  /\/\.git\/(?:(?:modules|worktrees)\/(?:.+\/)?)?(?:config|config\.worktree|hooks)(?:\/|$)/,
  /\/\.gitconfig$/,
  /\/\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshenv|zshrc|zprofile|zlogin|kshrc)$/,
  /\/\.(?:npmrc|yarnrc|curlrc|wgetrc|sqliterc|psqlrc|gdbinit|Rprofile)$/,
  /\/uv\.toml$/,
  /\/\.config\/(?:git|pip|uv|fish)(?:\/|$)/,
  /\/\.pip(?:\/|$)/,
  // Scripts of tests source these after they have installed a tool.
  /\/(?:\.local\/bin|\.cargo)\/env$/,
];

const ofSystem = [
  // The loader of programs.
  /^\/etc\/ld\.so\.(?:preload|conf|conf\.d|cache)(?:\/|$)/,
  /^\/etc\/ld-musl-[^/]*\.path$/,
  // Libraries loaded to look up users, to convert characters, and by any program that uses OpenSSL.
  /^\/etc\/(?:nsswitch|host)\.conf$/,
  /\/gconv\/gconv-modules(?:[./]|$)/,
  /\/(?:ssl|tls)\/openssl\.cnf$/,
  // Settings that su obeys besides those of PAM.
  /^\/etc\/(?:login\.defs|default\/su)$/,
  // Settings of shells, git, npm, pip and apt for all users.
  /^\/etc\/(?:profile|profile\.d|bash\.bashrc|bashrc|environment|zsh|gitconfig|npmrc|pip\.conf|wgetrc|apt)(?:\/|$)/,
  /^\/usr\/(?:local\/)?etc\/(?:npmrc|gitconfig)$/,
  // Files that programs look for in the directories above /tests.
  /^\/(?:package\.json|setup\.cfg|tox\.ini|pyproject\.toml|node_modules|Makefile|GNUmakefile)(?:\/|$)/,
  // Python's own modules, and its compiled ones, which it may believe without looking at their source.
  /\/lib(?:64)?\/python\d[^/]*\/(?!(?:site|dist)-packages(?:\/|$))/,
  /\/lib(?:64)?\/python\d+\.zip$/,
  /\/(?:site|dist)-packages\/(?:.*\/)?__pycache__(?:\/|$)/,
  /\/(?:pyvenv\.cfg|pybuilddir\.txt)$/,
  // Perl looks here first, also for the modules that every program loads.
  /^\/etc\/perl(?:\/|$)/,
  /^\/usr\/local\/(?:lib|share)\/(?:[^/]+\/)?perl5?\/(?:[\d.]+\/)?(?:strict|warnings|Config|Carp|Exporter|constant|feature|overload|parent|base|vars|utf8|lib|POSIX)\.pm$/,
  // Scripts that package managers run for packages installed earlier, and settings for where they put files instead.
  /^\/var\/lib\/dpkg\/(?:info\/[^/]+\.(?:preinst|postinst|prerm|postrm|config)|diversions|statoverride)$/,
  /^\/lib\/apk\/db\/scripts\.tar(?:\.gz)?$/,
  /^\/var\/lib\/pacman\/local\/[^/]+\/install$/,
  /^\/usr\/share\/libalpm\/(?:hooks|scripts)(?:\/|$)/,
  /\/policy-rc\.d$/,
  // Downloads that package managers believe to come from a server.
  /^\/var\/(?:lib\/apt\/lists|cache\/apt\/archives)\/./,
  // Programs that gcc runs in place of those in PATH, and its settings for all of them.
  /\/lib(?:exec)?\/gcc\/(?:.*\/)?(?:as|ld|specs)$/,
  /^\/usr\/x86_64-linux-gnu\/bin\/(?:as|ld)$/,
  // Build tools run what stands there in every project.
  /\/\.cargo\/config(?:\.toml)?$/,
  /\/\.gradle\/init(?:\.gradle|\.d\/)/,
  // The test runner, which may not be half the image's and half another version.
  /\/(?:site|dist)-packages\/(?:_?pytest|pluggy|iniconfig)(?:-[^/]*)?(?:\/|$)/,
];

const replaceable = [
  /^\/etc\/alternatives\//,
  // Scripts for the layout that the linker gives to programs.
  /\/ldscripts\//,
  /\/lib\/node_modules\/(?:npm|corepack)\//,
  /^\/etc\/(?:pam\.d|pam\.conf|security)(?:\/|$)/,
  // Files that come with compilers and interpreters.
  /^\/usr\/(?:local\/)?(?:lib|share)\/(?:[^/]+\/)?perl(?:5|-base)?\//,
  /^\/usr\/(?:local\/)?lib\/ruby\/(?!gems\/)/,
  /^\/usr\/(?:local\/go|lib\/go[^/]*|share\/go[^/]*|lib\/jvm|(?:local\/)?share\/cmake[^/]*)\//,
  /\/\.rustup\/toolchains\//,
  /\/(?:apache-)?(?:maven|gradle|ant|sbt)[^/]*\/(?:bin|boot|lib)\//,
  /^\/(?:opt|usr|usr\/local|usr\/share)\/(?:java|jvm|jdk|jre|openjdk|graalvm)[^/]*\//,
  /\/\.?nvm\/(?:nvm\.sh|nvm-exec|bash_completion)$/,
  // Libraries that the scripts of packages use.
  /^\/usr\/share\/(?:debconf|python3)\//,
];

/** Named as what programs read that lie beside it. */
const readBesidePrograms = /\.(?:_pth|cfg|conf|ini|profile|specs?)$/;

/** Programs there are run whenever something happens. Services and jobs have directories of such names too. */
const inHookDirectory =
  /^\/(?:etc|usr\/(?:local\/)?(?:etc|lib|share))\/(?!(?:systemd|cron|service|sv)\b)(?:.*\/)?(?!(?:init|rc\w|cron|sites-\w+)\.d\/)(?:[^/]+\.d|hooks)\/[^/]+$/;

const usersOfSystem = /^\/etc\/(?:passwd|group)$/;
/** Lists of plugins, also in the working directory, where `python -m pytest` looks for packages. */
const pluginList = /\/(?:[^/]+\.(?:dist|egg)-info|EGG-INFO)\/entry_points\.txt$/;
/** A repository's directory, and those in it that have settings of their own. */
const ofRepository = /\/\.git(?:\/(?:commondir|modules|worktrees)(?:\/(?!(?:.*\/)?objects\/).*)?)?$/;
/** Directories of programs that other programs run. Packages of Python and Node are the agent's to change. */
const ofLibraries =
  /^\/(?:usr\/)?(?:local\/)?lib(?:exec)?\d*\/(?!.*\/?(?:site-packages|dist-packages|node_modules)\/)/;
