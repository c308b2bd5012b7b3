// @ts-expect-error -- a plain script without types
import { installProgram } from "../../scripts/test-programs/install.js";
// @ts-expect-error -- a plain script without types
import { commandFor, findProgram, folderOf, programs } from "../../scripts/test-programs/programs.js";

/** The names in `scripts/test-programs/programs.js`. */
export type TestProgramName =
  | "codex"
  | "codex-mcp-server"
  | "server-everything"
  | "server-filesystem"
  | "conformance"
  | "gemini-cli"
  | "claude-code"
  | "opencode"
  | "chromium"
  | "redis-server"
  | "podman"
  | "openssh-server"
  | "python3"
  | "zsh"
  | "fish"
  | "mandoc";

export interface TestProgram {
  /** Empty where the program is missing. */
  path: string;
  /** Everything that was installed with it, for a program of npm. */
  folder: string;
  /** Null where it is there, else why tests of it are skipped, with the command that installs it. */
  missing: string | null;
}

/**
 * A program of somebody else that tests need. Unless it is large, it is installed when the first test file asks for it, which takes seconds and
 * needs the network; `BRIG_NO_INSTALL=1` forbids it.
 */
export async function testProgram(name: TestProgramName): Promise<TestProgram> {
  const mayInstall = !programs[name].large || process.env.BRIG_TEST_ALL_AGENTS === "1";
  const path: string | null = mayInstall ? await installProgram(name) : findProgram(name);
  return {
    path: path ?? "",
    folder: programs[name].packages ? folderOf(programs[name]) : "",
    missing: path === null ? `${name} is not installed; ${commandFor(name)}` : null,
  };
}
