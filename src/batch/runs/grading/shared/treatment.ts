import { posix } from "node:path";

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

/** Places where settings are looked for, and the task given to the agent. */
interface SettingPlaces {
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
function isSetting(path: string, places: SettingPlaces): boolean {
  if (places.settings.some((directory) => path === directory || path.startsWith(`${directory}/`)))
    return true;
  const name = nameInHome(path, places);
  if (name !== null && isSettingOfHome(name, { isWork: isWorkInHome(path, places) })) return true;
  if (path.startsWith(`${places.cwd}/`)) return false;
  return ofTools.some((pattern) => pattern.test(path));
}

/** The path of a program in one of the directories of a home that installers put into PATH. */
function isProgramOfHome(path: string, places: Pick<SettingPlaces, "homes">): boolean {
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
function hasWord(text: string, word: string): boolean {
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

/** Hidden directories of a home that are no settings, but work of the agent or software that it has installed. They stay. */
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

const TRIPLETS = ["x86_64-linux-gnu", "aarch64-linux-gnu"];
const LIBRARIES = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib", "/usr/local/lib64"];

const libraryDirectories = [
  ...LIBRARIES,
  ...TRIPLETS.flatMap((triplet) =>
    ["/lib", "/usr/lib", "/usr/local/lib"].map((directory) => `${directory}/${triplet}`),
  ),
];
const headerDirectories = [
  "/usr/include",
  "/usr/local/include",
  ...TRIPLETS.map((triplet) => `/usr/include/${triplet}`),
];

/** Shared and static libraries, the files that a compiler starts programs with, and what it is told about libraries. */
const libraryFile =
  /^\/(?:usr\/)?(?:local\/)?lib[^/]*\/(?:(?:.*\/)?[^/]*\.so(?:\.[^/]*)?|(?!.*\/(?:site-packages|dist-packages|node_modules|gems)\/)(?:.*\/)?[^/]+\.(?:a|o|pc))$/;

/** A directory of headers, in front of what follows it. The compiler's own come before the others. */
const headerDirectory =
  /^(?:\/usr\/(?:local\/)?include(?:\/[^/]+-linux-[^/]+)?(?:\/c\+\+\/[^/]+(?:\/[^/]+-linux-[^/]+)?|\/fortify)?|\/(?:usr\/)?(?:local\/)?lib\d*\/gcc\/[^/]+\/[^/]+\/include(?:-fixed)?)(?=\/)/;

/** Whether compilers and the loader look in that place for files. */
function isOnSearchPath(path: string): boolean {
  return libraryFile.test(path) || headerDirectory.test(path);
}

/** Other places for a program, library or header of the same name. One of them is found before the others. */
export function othersOfThatName(path: string, { programs, isProgram }: OnPath): string[] {
  const name = posix.basename(path);
  const joined = (directories: readonly string[], relative: string) =>
    directories.map((directory) => posix.join(directory, relative)).filter((other) => other !== path);
  if (isProgram) return joined(programs, name);
  const [headers] = headerDirectory.exec(path) ?? [];
  if (headers !== undefined) {
    // A directory in /usr/include may be one of headers itself, or only be named like one.
    const [top = ""] = /^\/usr\/(?:local\/)?include/.exec(headers) ?? [];
    const names = [headers, ...(top === "" ? [] : [top])].map((one) => path.slice(one.length + 1));
    return [...new Set(names.flatMap((relative) => joined(headerDirectories, relative)))];
  }
  const ofPackages = name.endsWith(".pc")
    ? [...libraryDirectories, "/usr/share"].map((directory) => `${directory}/pkgconfig`)
    : [];
  return joined([...libraryDirectories, ...ofPackages], name);
}

interface OnPath {
  /** The directories of PATH. */
  programs: readonly string[];
  /** Whether the path is that of a program. */
  isProgram: boolean;
}

/**
 * The name of the module that a path makes importable from the directory in which Python looks first when tests run
 * `python -m pytest`. A directory counts by its `__init__` only: without that, Python goes on looking. Null for other files, and for one that the
 * instruction names.
 */
export function topModuleOf(
  path: string,
  { cwd, instruction }: { cwd: string; instruction: string },
): string | null {
  const start = cwd === "/" ? "/" : `${cwd}/`;
  if (!path.startsWith(start)) return null;
  const [, name, directory] =
    /^([A-Za-z_]\w*)(\/__init__)?(?:\.cpython-[\w-]+|\.abi3|\.pypy[\w-]+)?\.(?:py|pyc|so)$/.exec(
      path.slice(start.length),
    ) ?? [];
  if (name === undefined) return null;
  return hasWord(instruction, directory === undefined ? `${name}.py` : `${name}/__init__.py`) ? null : name;
}

/** Whether Python itself has a module of that name, or pytest consists of it. What else the image has, nobody knows here. */
export function isUsualModule(name: string): boolean {
  return names.has(name);
}

/** Modules of any version of pytest, and those that it needs. */
const ofPytest =
  "pytest pluggy iniconfig packaging attr attrs exceptiongroup tomli pygments py colorama typing_extensions importlib_metadata zipp six more_itertools wcwidth toml atomicwrites xdist pytest_cov pytest_timeout pytest_asyncio pytest_mock pytest_jsonreport pytest_json_ctrf anyio";

/** Modules of Python 3.8 to 3.14, without those that only programs for people import. */
const ofPython =
  "abc aifc annotationlib argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress itertools json keyword linecache locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder multiprocessing netrc nis nntplib ntpath nturl2path numbers opcode operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc tty types typing unicodedata unittest urllib uu uuid warnings wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo";

const names: ReadonlySet<string> = new Set(`${ofPytest} ${ofPython}`.split(" "));
