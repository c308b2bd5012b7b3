/** Names obeyed by servers after a push, and by agents, which take them as instructions. */
const obeyedElsewhere: readonly ObeyedNames[] = [
  [[".github/workflows/", ".github/actions/"], "GitHub, after a push"],
  [[".gitlab-ci.yml", ".gitlab/"], "GitLab, after a push"],
  [".gitea/", "Gitea, after a push"],
  [".forgejo/", "Forgejo, after a push"],
  [[".woodpecker.*", ".woodpecker/"], "Woodpecker, after a push"],
  [".buildkite/", "Buildkite, after a push"],
  [".circleci/", "CircleCI, after a push"],
  [".travis.yml", "Travis CI, after a push"],
  ["Jenkinsfile*", "Jenkins, after a push"],
  [["azure-pipelines*.yml", ".azure-pipelines/"], "Azure Pipelines, after a push"],
  [["appveyor.yml", ".appveyor.yml"], "AppVeyor, after a push"],
  ["bitbucket-pipelines.yml", "Bitbucket, after a push"],
  [".drone.*", "Drone, after a push"],
  [".cirrus.*", "Cirrus CI, after a push"],
  [".semaphore/", "Semaphore, after a push"],
  [[".builds/", ".build.yml"], "SourceHut, after a push"],
  [".teamcity/", "TeamCity, after a push"],
  [".tekton/", "Tekton, after a push"],
  [".harness/", "Harness, after a push"],
  [".zuul.*", "Zuul, after a push"],
  ["cloudbuild.*", "Google Cloud Build, after a push"],
  ["buildspec.yml", "AWS CodeBuild, after a push"],
  [".readthedocs.*", "Read the Docs, after a push"],
  ["netlify.toml", "Netlify, after a push"],
  ["vercel.json", "Vercel, after a push"],
  ["AGENTS.md", "agents, as instructions"],
  ["AGENTS.override.md", "Codex, as instructions"],
  [["CLAUDE.md", "CLAUDE.local.md"], "Claude Code, as instructions"],
  ["GEMINI.md", "Gemini CLI, as instructions"],
  ["QWEN.md", "Qwen Code, as instructions"],
  ["CRUSH.md", "Crush, as instructions"],
  ["WARP.md", "Warp, as instructions"],
  [".cursorrules", "Cursor, as instructions"],
  [".windsurfrules", "Windsurf, as instructions"],
  [[".clinerules", ".clinerules/"], "Cline, as instructions"],
  [".roorules*", "Roo Code, as instructions"],
  [".roomodes", "Roo Code, as modes"],
  [".kilocodemodes", "Kilo Code, as modes"],
  [".rules", "Zed, as instructions"],
  [".goosehints", "goose, as instructions"],
  [".augment-guidelines", "Augment, as instructions"],
  [[".github/copilot-instructions.md", ".github/instructions/"], "Copilot, as instructions"],
  [".github/prompts/", "Copilot, as prompts"],
  [".github/chatmodes/", "Copilot, as modes"],
  [".github/agents/", "Copilot, as agents"],
];

/** Names obeyed by programs that look for them as soon as a folder is opened or entered, a shell starts, or git is called. */
const obeyedWhenOpened: readonly ObeyedNames[] = [
  ["!*.git/**/hooks/*.sample", "nobody: git runs no sample"],
  [["*.git/**/config", "*.git/**/config.worktree"], "git, whose settings name programs"],
  ["*.git/**/hooks/", "git, at a commit, a checkout and so on"],
  ["*.git/**/commondir", "git, which reads another directory's settings"],
  ["*.git/**/info/attributes", "git, which runs filters and diff drivers for the files it names"],
  [".gitconfig", "git, if it is included or in a home directory"],
  [".config/git/", "git, if it is in a home directory"],
  [".hg/", "Mercurial, whose hgrc names hooks and extensions"],
  [".jj/", "Jujutsu, whose repository settings name programs"],
  [".sl/", "Sapling, whose settings name hooks"],
  [".pijul/", "Pijul, whose settings name hooks"],
  ["_darcs/prefs/", "Darcs, whose defaults name hooks"],
  [[".envrc", ".direnv/"], "direnv, when a shell enters the directory"],
  [".shadowenv.d/", "shadowenv, when a shell enters the directory"],
  [[".mise.toml", "mise.toml", ".mise.*.toml", "mise.*.toml"], "mise, when a shell enters the directory"],
  [".mise/", "mise, for its tasks and settings"],
  ["mise/config.toml", "mise, when a shell enters the directory"],
  [".config/mise/", "mise, for its tasks and settings"],
  [".tool-versions", "asdf and mise, which choose programs by it"],
  [".asdfrc", "asdf, which runs its hooks"],
  [".sdkmanrc", "SDKMAN, when a shell enters the directory"],
  [".vscode/tasks.json", "VS Code, which can start tasks when the folder is opened"],
  [".vscode/settings.json", "VS Code, whose settings name programs"],
  [".vscode/", "VS Code, when the folder is opened"],
  ["*.code-workspace", "VS Code, whose settings and tasks it has"],
  [[".devcontainer.json", ".devcontainer/"], "VS Code and other editors, which run its commands"],
  [".idea/", "JetBrains editors, when the folder is opened"],
  [[".run/", "*.run.xml"], "JetBrains editors, as run configurations"],
  [".fleet/", "JetBrains Fleet, as run configurations"],
  [".zed/", "Zed, whose settings and tasks name programs"],
  [".nova/", "Nova, whose tasks name programs"],
  [".helix/", "Helix, whose settings name language servers"],
  [".vim/", "Vim, if exrc is on"],
  [".vimrc", "Vim, if exrc is on or in a home directory"],
  ["_vimrc", "Vim, in a home directory"],
  [".exrc", "Vim and vi, if exrc is on"],
  [[".nvimrc", ".nvim.lua"], "Neovim, if exrc is on"],
  [".nvim/", "Neovim and its plugins for projects"],
  [".lvimrc", "localvimrc of Vim"],
  [".local.vimrc", "plugins of Vim for projects"],
  [".vimspector.json", "Vimspector, as debug configurations"],
  [".ycm_extra_conf.py", "YouCompleteMe, which runs it"],
  [[".dir-locals.el", ".dir-locals-2.el"], "Emacs, when a file below is opened"],
  [[".emacs", ".emacs.d/"], "Emacs, in a home directory"],
  ["*.sublime-project", "Sublime Text, whose build systems name programs"],
  [".project", "Eclipse, whose builders name programs"],
  [".externalToolBuilders/", "Eclipse, as builders"],
  [".settings/", "Eclipse, when the project is opened"],
  [".factorypath", "Eclipse, which loads annotation processors"],
  ["nbproject/", "NetBeans, when the project is opened"],
  [["*.pro.user", "CMakeLists.txt.user"], "Qt Creator, whose steps name programs"],
  [".clangd", "clangd, when a file below is opened"],
  ["compile_commands.json", "clangd, which may ask the compilers that it names"],
  [".luarc.json", "the Lua language server, which loads plugins"],
  ["omnisharp.json", "OmniSharp, which loads plugins"],
  [".mcp.json", "Claude Code and others, which start its servers"],
  ["mcp.json", "editors and agents, which start its servers"],
  [".claude/", "Claude Code: hooks, permissions, servers, skills"],
  [".codex/", "Codex and brig: settings, rules, skills"],
  [".brig/", "brig: settings, rules, skills"],
  [".agents/", "agents: skills and settings"],
  [".gemini/", "Gemini CLI: settings, servers, commands"],
  [".qwen/", "Qwen Code: settings, servers, commands"],
  [".cursor/", "Cursor: servers, hooks, rules"],
  [".windsurf/", "Windsurf: workflows and rules"],
  [".opencode/", "opencode: plugins, tools, commands"],
  [["opencode.json", "opencode.jsonc"], "opencode: servers, permissions, commands"],
  [".crush/", "Crush: settings"],
  [["crush.json", ".crush.json"], "Crush: servers and permissions"],
  [".continue/", "Continue: servers and rules"],
  [".kiro/", "Kiro: hooks, servers, rules"],
  [".amazonq/", "Amazon Q: servers, agents, rules"],
  [".roo/", "Roo Code: servers and rules"],
  [".kilocode/", "Kilo Code: servers and rules"],
  [".trae/", "Trae: servers and rules"],
  [".augment/", "Augment: commands and rules"],
  [".junie/", "Junie: servers and guidelines"],
  [".openhands/", "OpenHands: set-up scripts and instructions"],
  [".factory/", "Factory: servers, hooks, commands"],
  [".aider.conf.yml", "aider, whose settings name commands"],
  [".github/hooks/", "Copilot, as hooks"],
  [[".bash_login", ".bash_logout", ".bash_profile", ".bash_aliases", ".bashrc"], "bash, in a home directory"],
  [".profile", "shells, in a home directory"],
  [[".zlogin", ".zprofile", ".zshenv", ".zshrc"], "zsh, in a home directory"],
  [".config/fish/", "fish, in a home directory"],
  [".inputrc", "shells, in a home directory"],
  [".xinitrc", "the X server's start, in a home directory"],
  [".xprofile", "the session's start, in a home directory"],
  [".pam_environment", "the login, in a home directory"],
  [".config/autostart/", "the desktop's start, in a home directory"],
  [[".config/systemd/", ".config/environment.d/"], "systemd, in a home directory"],
  [".ssh/", "ssh and its server, in a home directory"],
  [".tmux.conf", "tmux, in a home directory"],
  [".screenrc", "screen, in a home directory"],
  [".curlrc", "curl, in a home directory"],
  [".wgetrc", "wget, in a home directory"],
  [".netrc", "programs that log in, in a home directory"],
  [".aws/", "the AWS tools, which run credential_process"],
  [".kube/config", "kubectl, which runs the programs that log in"],
  [".docker/config.json", "Docker, which runs credential helpers"],
  ["*.desktop", "desktops, when it is opened"],
  ["*.lnk", "Windows, when it is opened"],
  ["*.command", "macOS, when it is opened"],
  ["autorun.inf", "Windows, when a disk is mounted"],
  ["desktop.ini", "Windows, when the folder is opened"],
];

/** Names obeyed by the usual commands of other languages, builds and environments. */
const obeyedByBuildTools: readonly ObeyedNames[] = [
  [["Gemfile", "gems.rb"], "Bundler, as code"],
  ["*.gemspec", "Bundler and gem, as code"],
  [".bundle/", "Bundler"],
  [".gemrc", "gem"],
  [".rspec", "RSpec, which loads files"],
  [".rubocop*.yml", "RuboCop, which loads extensions"],
  [".simplecov", "SimpleCov, as code"],
  ["Rakefile", "rake, as code"],
  ["config.ru", "Rack, as code"],
  ["Guardfile", "Guard, as code"],
  ["Capfile", "Capistrano, as code"],
  ["Vagrantfile", "Vagrant, as code"],
  ["Brewfile", "Homebrew, as code"],
  ["Podfile", "CocoaPods, as code"],
  ["Dangerfile", "Danger, as code"],
  ["fastlane/", "fastlane, as code"],
  [".cargo/", "cargo, whose settings name programs"],
  ["Cargo.toml", "cargo"],
  ["build.rs", "cargo, as code"],
  [["rust-toolchain", "rust-toolchain.toml"], "rustup, which chooses programs by it"],
  ["pom.xml", "Maven, whose plugins it names"],
  [".mvn/", "Maven, whose extensions and options it has"],
  [["mvnw", "mvnw.cmd"], "Maven, in place of its own program"],
  [["*.gradle", "*.gradle.kts"], "Gradle, as code"],
  ["gradle.properties", "Gradle, whose options it has"],
  [["gradlew", "gradlew.bat", "gradle/wrapper/"], "Gradle, in place of its own program"],
  ["buildSrc/", "Gradle, as code"],
  ["build.xml", "Ant"],
  ["*.sbt", "sbt, as code"],
  [[".sbtopts", ".jvmopts", "project/build.properties"], "sbt"],
  [["build.sc", "build.mill"], "Mill, as code"],
  ["project.clj", "Leiningen, as code"],
  ["deps.edn", "Clojure"],
  ["bb.edn", "Babashka, whose tasks it has"],
  [["WORKSPACE", "WORKSPACE.bazel", "MODULE.bazel", "BUILD.bazel", "*.bzl"], "Bazel, as code"],
  [".bazelrc", "Bazel, whose options it has"],
  [".bazeliskrc", "Bazelisk, which fetches Bazel"],
  ["tools/bazel", "Bazel, in place of its own program"],
  [".buckconfig", "Buck"],
  ["pants.toml", "Pants"],
  ["*.rsp", "MSBuild, as options"],
  [["*.props", "*.targets", "*.csproj", "*.fsproj", "*.vbproj", "*.vcxproj", "*.proj"], "MSBuild"],
  ["nuget.config", "NuGet"],
  ["global.json", ".NET, which chooses its programs by it"],
  [".config/dotnet-tools.json", ".NET, as programs of the project"],
  ["build.cake", "Cake, as code"],
  ["build.fsx", "FAKE, as code"],
  [["Makefile", "GNUmakefile", "BSDmakefile", "*.mk"], "make"],
  ["configure", "the usual build of C programs"],
  ["configure.ac", "autoconf"],
  ["Makefile.am", "automake"],
  [["CMakeLists.txt", "CMakePresets.json", "CMakeUserPresets.json", "*.cmake"], "CMake"],
  ["meson.build", "Meson"],
  ["build.ninja", "Ninja"],
  ["conanfile.*", "Conan"],
  ["vcpkg.json", "vcpkg"],
  ["xmake.lua", "xmake, as code"],
  ["premake*.lua", "premake, as code"],
  [["SConstruct", "SConscript"], "SCons, as code"],
  ["wscript", "waf, as code"],
  ["Tupfile", "tup"],
  ["Kbuild", "make"],
  ["binding.gyp", "node-gyp, at npm install"],
  [["go.mod", "go.work"], "go, whose toolchain it names"],
  ["magefile.go", "mage, as code"],
  [".golangci.*", "golangci-lint, which loads plugins"],
  [".air.toml", "air, whose commands it has"],
  [".goreleaser.*", "GoReleaser, whose hooks it has"],
  ["Package.swift", "Swift, as code"],
  ["*.xcodeproj/", "Xcode, whose build phases it has"],
  ["*.xcworkspace/", "Xcode, whose schemes it has"],
  ["*.xcconfig", "Xcode, whose settings name programs"],
  [["mix.exs", ".formatter.exs"], "mix, as code"],
  ["rebar.config", "rebar3, whose hooks it has"],
  ["rebar.config.script", "rebar3, as code"],
  ["Setup.hs", "Cabal, as code"],
  ["cabal.project", "Cabal"],
  ["stack.yaml", "Stack"],
  ["hie.yaml", "the Haskell language server, which runs programs"],
  ["build.zig", "zig, as code"],
  ["*.nims", "nim, as code"],
  ["*.nimble", "nimble, as code"],
  ["deps/build.jl", "Julia's package manager, as code"],
  ["composer.json", "Composer, whose scripts it has"],
  ["phpunit.xml*", "PHPUnit, which loads scripts"],
  ["phpstan.neon*", "PHPStan, which loads scripts"],
  [".php-cs-fixer*.php", "PHP CS Fixer, as code"],
  ["rector.php", "Rector, as code"],
  [".user.ini", "PHP, which prepends scripts"],
  [".htaccess", "Apache"],
  [["Makefile.PL", "Build.PL", "cpanfile"], "Perl's installers, as code"],
  [".proverc", "prove, which loads modules"],
  [".luacheckrc", "luacheck, as code"],
  ["*.rockspec", "LuaRocks"],
  ["pubspec.yaml", "Dart"],
  ["build.yaml", "Dart's build_runner"],
  [["dune", "dune-project"], "dune"],
  ["*.opam", "opam"],
  ["shard.yml", "Shards, whose postinstall it has"],
  ["renv/activate.R", "R, when it starts"],
  [["flake.nix", "shell.nix", "default.nix"], "Nix"],
  [["devenv.nix", "devenv.yaml"], "devenv"],
  ["devbox.json", "Devbox, whose init_hook it has"],
  ["guix.scm", "Guix, as code"],
  ["*.tf", "Terraform"],
  [".terraform/", "Terraform, as programs"],
  [".terraformrc", "Terraform"],
  ["ansible.cfg", "Ansible"],
  ["Pulumi.yaml", "Pulumi"],
  ["serverless.*", "Serverless, which loads plugins"],
  ["skaffold.yaml", "Skaffold, whose hooks it has"],
  ["Tiltfile", "Tilt, as code"],
  [["compose*.yaml", "compose*.yml", "docker-compose*.yaml", "docker-compose*.yml"], "Compose"],
  ["docker-bake.*", "Docker's bake"],
  ["devfile.yaml", "development environments"],
  [[".gitpod.yml", ".gitpod/"], "Gitpod"],
  [".replit", "Replit"],
  [".codesandbox/", "CodeSandbox"],
  ["Taskfile.*", "Task"],
  [["Justfile", ".justfile", "*.just"], "just"],
  ["Procfile*", "foreman and others"],
];

/** Names obeyed by hooks of git, debuggers, and the usual commands of Python and JavaScript. */
const obeyedByScriptTools: readonly ObeyedNames[] = [
  [".gitattributes", "git, which runs filters, merge and diff drivers for the files it names"],
  [".gitmodules", "git, which fetches what it names"],
  [".githooks/", "git, if core.hooksPath names it"],
  [".git-hooks/", "git or Overcommit, as hooks"],
  [["githooks/", ".hooks/"], "git, if core.hooksPath names it"],
  [".husky/", "husky, as hooks of git"],
  [".huskyrc*", "husky, before its hooks"],
  [[".lefthook/", "lefthook.*", ".lefthook.*", "lefthook-local.*"], "lefthook, as hooks of git"],
  [[".lefthook-local.*", ".config/lefthook.*"], "lefthook, as hooks of git"],
  [".pre-commit-config.yaml", "pre-commit, as hooks of git"],
  [".pre-commit-config.yml", "prek, as hooks of git"],
  [".pre-commit-hooks.yaml", "pre-commit, as hooks that others use"],
  ["prek.toml", "prek, as hooks of git"],
  [".overcommit.yml", "Overcommit, as hooks of git"],
  [["simple-git-hooks.*", ".simple-git-hooks.*"], "simple-git-hooks, as hooks of git"],
  [["captainhook.json", ".captain-hook/"], "CaptainHook, as hooks of git"],
  ["grumphp.yml", "GrumPHP, as hooks of git"],
  [".rusty-hook.toml", "rusty-hook, as hooks of git"],
  [".cargo-husky/", "cargo-husky, as hooks of git"],
  ["hk.pkl", "hk, as hooks of git"],
  [".arcconfig", "Arcanist, which loads libraries"],
  [".arclint", "Arcanist, which runs linters"],
  [".env", "Compose and programs that read such files"],
  [".gdbinit", "gdb, when it starts"],
  [["*-gdb.py", "*-gdb.gdb", "*-gdb.scm"], "gdb, when it loads the program beside it"],
  [".lldbinit", "lldb, when it starts"],
  [".pdbrc", "Python's debugger"],
  [".perldb", "Perl's debugger"],
  [".ghci", "GHCi, when it starts"],
  [[".Rprofile", ".Renviron"], "R, when it starts"],
  [".irbrc", "irb, when it starts"],
  [".pryrc", "pry, when it starts"],
  [".iex.exs", "iex, when it starts"],
  [".ocamlinit", "OCaml's toplevel, when it starts"],
  [[".latexmkrc", "latexmkrc"], "latexmk, which runs it"],
  ["*.pth", "Python, from every directory of packages"],
  [["sitecustomize.py", "sitecustomize/", "usercustomize.py", "usercustomize/"], "Python, when it starts"],
  ["pyvenv.cfg", "Python, which finds its library by it"],
  [[".venv/bin/", "venv/bin/"], "shells and editors in which the environment is active"],
  [["conftest.py", "pytest.ini", ".pytest.ini"], "pytest"],
  ["pyproject.toml", "pip, uv, pytest and most tools of Python"],
  ["setup.py", "pip and setuptools"],
  ["setup.cfg", "setuptools, pytest and other tools of Python"],
  ["tox.ini", "tox and pytest"],
  ["noxfile.py", "nox"],
  ["tasks.py", "invoke"],
  ["fabfile.py", "Fabric"],
  ["dodo.py", "doit"],
  ["Pipfile", "pipenv"],
  [[".pylintrc", "pylintrc"], "pylint, whose init-hook is code"],
  [".coveragerc", "coverage, which loads plugins"],
  [["mypy.ini", ".mypy.ini"], "mypy, which loads plugins"],
  [".flake8", "flake8, which loads plugins"],
  ["pip.conf", "pip"],
  [".pypirc", "twine and other tools of Python"],
  ["uv.toml", "uv"],
  ["poetry.toml", "Poetry"],
  ["pixi.toml", "pixi, whose tasks and activation scripts it has"],
  [["environment.yml", ".condarc"], "conda"],
  ["package.json", "npm and other package managers, whose scripts it has"],
  ["node_modules/.bin/", "npm and npx, by the names of their programs"],
  [".npmrc", "npm"],
  [".yarnrc", "Yarn"],
  [".yarnrc.yml", "Yarn, which loads plugins and its own program"],
  [".yarn/releases/", "Yarn, as its own program"],
  [".yarn/plugins/", "Yarn, as plugins"],
  [".yarn/sdks/", "editors, as tools of the project"],
  [[".pnp.cjs", ".pnp.loader.mjs"], "Node, where Yarn has set it up"],
  [[".pnpmfile.cjs", ".pnpmfile.mjs"], "pnpm, at every install"],
  ["pnpm-workspace.yaml", "pnpm"],
  ["bunfig.toml", "bun, which preloads scripts"],
  [["deno.json", "deno.jsonc"], "deno, whose tasks it has"],
  ["node.config.json", "Node, if it is asked to read it"],
  ["tsconfig*.json", "TypeScript, whose plugins and bases it names"],
  ["jsconfig*.json", "editors, whose TypeScript plugins it names"],
  [["*.config.js", "*.config.cjs", "*.config.mjs"], "bundlers, linters and test runners, as code"],
  [["*.config.ts", "*.config.cts", "*.config.mts"], "bundlers, linters and test runners, as code"],
  [["*.conf.js", "*.conf.ts"], "test runners, as code"],
  [["*.workspace.js", "*.workspace.ts"], "vitest, as code"],
  [[".*rc.js", ".*rc.cjs", ".*rc.mjs", ".*rc.ts"], "bundlers, linters and test runners, as code"],
  [".eslintrc*", "ESLint, which loads plugins"],
  [".babelrc*", "Babel, which loads plugins"],
  ["*.config.json", "bundlers and test runners, which load scripts"],
  [".swcrc", "swc, which loads plugins"],
  [".mocharc*", "mocha, which loads scripts"],
  [".nycrc*", "nyc, which loads scripts"],
  [".prettierrc*", "Prettier, which loads plugins"],
  [".stylelintrc*", "stylelint, which loads plugins"],
  [".postcssrc*", "PostCSS, which loads plugins"],
  [".parcelrc", "Parcel, which loads plugins"],
  [".lintstagedrc*", "lint-staged, whose commands it has"],
  [".commitlintrc*", "commitlint, which loads plugins"],
  [".releaserc*", "semantic-release, which loads plugins"],
  ["wallaby.js", "Wallaby, as code"],
  ["Gruntfile.*", "Grunt, as code"],
  ["gulpfile.*", "gulp, as code"],
  ["Jakefile*", "jake, as code"],
  ["angular.json", "Angular, whose builders it names"],
  ["ember-cli-build.js", "Ember, as code"],
  ["lerna.json", "Lerna"],
  ["nx.json", "Nx, whose plugins it names"],
  ["turbo.json", "Turborepo"],
  ["rush.json", "Rush, whose hooks it has"],
  ["nodemon.json", "nodemon, whose commands it has"],
];

/** The dangerous first. The first that fits a path counts. */
export const obeyedNames: readonly (readonly [name: string, by: string])[] = [
  ...obeyedWhenOpened,
  ...obeyedByScriptTools,
  ...obeyedByBuildTools,
  ...obeyedElsewhere,
].flatMap(([names, by]) => [names].flat().map((name) => [name, by] as const));

interface Rule {
  name: string;
  by: string;
  isExempt: boolean;
  /** The names of its path in lower case, from the last one to the first. */
  names: readonly string[];
}

interface RuleTable {
  /** The rules by the last names of their paths. */
  named: ReadonlyMap<string, readonly Rule[]>;
  /** The rules whose last name has a "*" in it. */
  others: readonly Rule[];
}

const rules = obeyedNames.map(([name, by]): Rule & { isDirectory: boolean } => {
  const isExempt = name.startsWith("!");
  const path = name.slice(isExempt ? 1 : 0).toLowerCase();
  return { name, by, isExempt, isDirectory: path.endsWith("/"), names: namesOf(path) };
});
const files = tableOf(rules.filter(({ isDirectory }) => !isDirectory));
const directories = tableOf(rules.filter(({ isDirectory }) => isDirectory));
const ways = tableOf(rules.filter(({ isExempt }) => !isExempt).flatMap(waysTo));

/** The programs that obey a file at this relative path; null if none does. A link may also stand for a directory. */
export function whoObeys(path: string, type: "file" | "symlink"): string | null {
  const names = namesOf(path.toLowerCase());
  const fitting = [find(files, names)];
  for (let above = names.slice(1); above.length > 0; above = above.slice(1))
    fitting.push(find(directories, above));
  if (type === "symlink") fitting.push(find(directories, names), find(ways, names));
  const first = fitting
    .filter((rule) => rule !== undefined)
    .reduce<Rule | undefined>(
      (one, other) => (one === undefined || isBefore(other, one) ? other : one),
      undefined,
    );
  return first === undefined || first.isExempt ? null : first.by;
}

/** Whether a directory of this path, which is relative, may make something obeyed that is in it. */
export function isTelling(path: string): boolean {
  const names = namesOf(path.toLowerCase());
  return (find(directories, names) ?? find(ways, names)) !== undefined;
}

const order = new Map(rules.map(({ name }, at) => [name, at]));

function isBefore(one: Rule, other: Rule): boolean {
  return (order.get(one.name) ?? 0) < (order.get(other.name) ?? 0);
}

function namesOf(path: string): string[] {
  return path
    .split("/")
    .filter((name) => name !== "")
    .reverse();
}

/** The directories on the way to what a rule names. One that may be any is none of them. */
function waysTo(rule: Rule): Rule[] {
  return rule.names
    .slice(1)
    .map((_, at) => ({ ...rule, names: rule.names.slice(at + 1) }))
    .filter(({ names }) => names[0] !== "**");
}

function tableOf(all: readonly Rule[]): RuleTable {
  const named = new Map<string, Rule[]>();
  const others: Rule[] = [];
  for (const rule of all) {
    const [last = ""] = rule.names;
    if (last.includes("*")) others.push(rule);
    else named.set(last, [...(named.get(last) ?? []), rule]);
  }
  return { named, others };
}

function find({ named, others }: RuleTable, names: readonly string[]): Rule | undefined {
  const isFitting = (rule: Rule) => fits(rule.names, names);
  const one = named.get(names[0] ?? "")?.find(isFitting);
  const other = others.find(isFitting);
  if (one === undefined || other === undefined) return one ?? other;
  return isBefore(one, other) ? one : other;
}

/** Both from the last name to the first. */
function fits([wanted, ...rest]: readonly string[], names: readonly string[]): boolean {
  if (wanted === undefined) return true;
  if (wanted === "**") return names.some((_, at) => fits(rest, names.slice(at))) || fits(rest, []);
  const [name, ...others] = names;
  return name !== undefined && fitsName(wanted, name) && fits(rest, others);
}

function fitsName(wanted: string, name: string): boolean {
  const star = wanted.indexOf("*");
  if (star < 0) return wanted === name;
  const [start, end] = [wanted.slice(0, star), wanted.slice(star + 1)];
  return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
}

/**
 * Names that programs run or obey without being asked to, and who does. A name fits a path that ends with it. In
 * one name "*" stands for anything, and the name "**" for any number of names. A name that ends with "/" is about
 * everything below such a directory. What fits a name with "!" before it is obeyed by nobody. Upper and lower case
 * are the same, as they are on some file systems. The runner reads names in the same way: receipt-rules.h.
 */
type ObeyedNames = readonly [names: string | readonly string[], by: string];
