import { describe, expect, it } from "vitest";
import { RECEIPT_RECORDS_MAX, RECEIPT_RULES_MAX } from "../../../../../src/sandbox/channel/protocol.js";
import { isTelling, obeyedNames, whoObeys } from "../../../../../src/sandbox/receipt/obeyed-names.js";

const paths = [
  ...["proj.code-workspace", ".zed/tasks.json", ".zed/settings.json", ".gemini/settings.json", ".hg/hgrc"],
  ...[".jj/repo/config.toml", "sub/.codex/config.toml", "sub/.agents/skills/x/SKILL.md", ".mise/tasks/x"],
  ...[
    ".mise.local.toml",
    "mise.local.toml",
    ".tool-versions",
    ".Rprofile",
    ".ghci",
    ".vim/x.vim",
    "AGENTS.md",
  ],
  ...["CLAUDE.md", "GEMINI.md", ".cursorrules", ".windsurfrules", ".github/copilot-instructions.md"],
  ...[".gitea/workflows/x.yml", ".forgejo/workflows/x.yml", ".woodpecker.yml", ".buildkite/pipeline.yml"],
  ...[
    ".lefthook.yml",
    "lefthook.yaml",
    ".mvn/extensions.xml",
    "gradle/wrapper/gradle-wrapper.jar",
    "gradlew",
  ],
  ...["pom.xml", "settings.gradle.kts", "init.gradle", "Directory.Build.props", "Directory.Build.targets"],
  ...["Gemfile", ".bundle/config", ".rspec", "pyproject.toml", "setup.cfg", "pytest.ini", "tsconfig.json"],
  ...[
    "vite.config.ts",
    "vitest.config.ts",
    "jest.config.js",
    "eslint.config.js",
    ".eslintrc.js",
    ".prettierrc.js",
  ],
  ...[".babelrc.js", "bunfig.toml", "pnpm-workspace.yaml", ".pnpmfile.mjs", ".yarn/releases/yarn.cjs"],
  ...["compose.yaml", "docker-compose.yml", "CMakeLists.txt", "flake.nix", "shell.nix", ".direnv/direnvrc"],
  ...["devbox.json", ".gitpod.yml", ".shadowenv.d/x.lisp", ".run/x.run.xml", "node_modules/.bin/npm"],
  ...["sitecustomize/__init__.py", "x-gdb.py", "x.desktop", "Taskfile.dist.yml", "sub/App.csproj"],
  ...[
    ".bashrc",
    "a/evil.pth",
    "Makefile",
    "conftest.py",
    ".husky/_/pre-commit",
    ".githooks/x",
    ".VSCODE/tasks.json",
  ],
  ...["nested/.git/hooks/post-commit", ".git/modules/m/hooks/h", "b.git/hooks/pre-push", "x/.git/config"],
];
const others = [
  ...[
    "bashrc",
    "x.pth.txt",
    "config",
    "hooks/pre-commit",
    "docs/hooks",
    "main.c",
    ".github/plain",
    "workflows/a.yml",
  ],
  ...["x/.git/hooks/pre-commit.sample", ".git/other", "src/vscode/x", "a.vscode/x", "sitecustomize.txt"],
  ...["gradle/wrapper", "src/index.ts", "README.md", "__init__.py", "compose.txt", "node_modules/x/index.js"],
];

describe("names that are obeyed", () => {
  it.each(paths)("have %s among them", (path) => {
    expect(whoObeys(path, "file")).toMatch(/\w/);
    expect(whoObeys(`deep/er/${path}`, "file")).toMatch(/\w/);
  });

  it.each(others)("do not have %s among them", (path) => {
    expect(whoObeys(path, "file")).toBeNull();
  });

  it("stand for directories where they are links", () => {
    for (const path of [".vscode", "a/.husky", ".github", "sitecustomize", "x.git", "node_modules"]) {
      expect(whoObeys(path, "symlink"), path).toMatch(/\w/);
      expect(whoObeys(path, "file"), path).toBeNull();
      expect(isTelling(path), path).toBe(true);
    }
    for (const path of ["vscode", "build", "hooks", "a/workflows", "packages/core"]) {
      expect(whoObeys(path, "symlink"), path).toBeNull();
      expect(isTelling(path), path).toBe(false);
    }
  });

  it("are told apart by the first that fits", () => {
    expect(whoObeys(".vscode/tasks.json", "file")).toMatch(/start tasks/);
    expect(whoObeys(".vscode/Makefile", "file")).toMatch(/VS Code/);
  });

  it("are lines of their own, with one star in a name, and not more than the runner takes", () => {
    const names = obeyedNames.map(([name]) => name.toLowerCase());
    expect(new Set(names).size).toBe(names.length);
    for (const [name, by] of obeyedNames) {
      expect(name).toMatch(/^!?(?:[^/*\n]*\*?[^/*\n]*|\*\*)(?:\/(?:[^/*\n]*\*?[^/*\n]*|\*\*))*$/);
      expect(by).toMatch(/^\S.*\S$/);
    }
    expect(names.length).toBeLessThanOrEqual(RECEIPT_RULES_MAX);
    expect(RECEIPT_RULES_MAX + 3).toBeLessThan(RECEIPT_RECORDS_MAX);
  });
});
