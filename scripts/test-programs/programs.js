import { accessSync, constants, existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the programs of npm packages are, each in its own folder: none is a dependency of brig. */
export const place = fileURLToPath(new URL("../../.bench", import.meta.url));

/**
 * The programs of other people that brig is tested and measured with. `packages` are npm's, and the first of them names the folder; some cannot
 * be used before their own installation scripts have run. `debian` is a package of Debian. One that is `large` has several hundred megabytes
 * and few tests, so it is only installed on request.
 */
export const programs = {
  // BRIG_TEST_CODEX is the path of another Codex to use.
  codex: { packages: ["@openai/codex@0.169.0"], bin: "codex", instead: process.env.BRIG_TEST_CODEX },
  // The newest tested Codex that still has `codex mcp-server`.
  "codex-mcp-server": { packages: ["@openai/codex@0.153.0"], bin: "codex" },
  "server-everything": {
    packages: ["@modelcontextprotocol/server-everything@2026.8.31"],
    bin: "mcp-server-everything",
  },
  "server-filesystem": {
    packages: ["@modelcontextprotocol/server-filesystem@2026.8.31"],
    bin: "mcp-server-filesystem",
  },
  // It needs Node 22, which the package "node" brings.
  conformance: {
    packages: ["@modelcontextprotocol/conformance@0.1.16", "node@22.23.3"],
    bin: "conformance",
    needsScripts: true,
  },
  "gemini-cli": { packages: ["@google/gemini-cli@0.61.0"], bin: "gemini" },
  "claude-code": {
    packages: ["@anthropic-ai/claude-code@2.1.330"],
    bin: "claude",
    needsScripts: true,
    large: true,
  },
  opencode: { packages: ["opencode-ai@1.18.33"], bin: "opencode", needsScripts: true, large: true },
  chromium: { debian: "chromium", path: "/usr/bin/chromium" },
  "redis-server": { debian: "redis-server", path: "/usr/bin/redis-server" },
  podman: { debian: "podman", path: "/usr/bin/podman" },
  // It brings OpenSSH's client.
  "openssh-server": { debian: "openssh-server", path: "/usr/sbin/sshd" },
  python3: { debian: "python3", bin: "python3" },
  zsh: { debian: "zsh", bin: "zsh" },
  fish: { debian: "fish", bin: "fish" },
  mandoc: { debian: "mandoc", bin: "mandoc" },
};

export function folderOf({ packages }) {
  return join(place, packages[0].replace(/^@[^/]*\//, "").replace("@", "-"));
}

/** The path of the program, or null where it is not installed. */
export function findProgram(name) {
  const program = programs[name];
  if (program.instead) return program.instead;
  if (program.packages) return ifThere(join(folderOf(program), "node_modules", ".bin", program.bin));
  return program.path ? ifThere(program.path) : onPath(program.bin);
}

/** The command with which a person installs it. */
export function commandFor(name) {
  const { debian } = programs[name];
  return debian ? `apt-get install ${debian}` : `node scripts/install-test-programs.mjs ${name}`;
}

function ifThere(path) {
  return existsSync(path) ? path : null;
}

function onPath(name) {
  const paths = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name));
  return paths.find(isExecutable) ?? null;
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
