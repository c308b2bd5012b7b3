import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const environment = {
  PATH: process.env.PATH,
  HOME: "/proc/nonexistent",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  // Tests that act as another user have given their repository to that user.
  GIT_CONFIG_COUNT: "1",
  GIT_CONFIG_KEY_0: "safe.directory",
  GIT_CONFIG_VALUE_0: "*",
  GIT_AUTHOR_NAME: "A",
  GIT_AUTHOR_EMAIL: "a@example.com",
  GIT_COMMITTER_NAME: "A",
  GIT_COMMITTER_EMAIL: "a@example.com",
};

/** Runs git as a person would, but with no configuration of this machine. */
export function git(directory: string, args: readonly string[], input?: Uint8Array | string): string {
  return gitBytes(directory, args, input).toString("utf8").trim();
}

export function gitBytes(directory: string, args: readonly string[], input?: Uint8Array | string): Buffer {
  return execFileSync("git", args, {
    cwd: directory,
    input,
    env: environment,
    stdio: ["pipe", "pipe", "pipe"],
    maxBuffer: 1 << 30,
  });
}

/** A repository with one commit on the branch main. */
export async function createRepository(directory: string, args: readonly string[] = []): Promise<string> {
  await mkdir(directory, { recursive: true });
  git(directory, ["init", "-q", "-b", "main", ...args]);
  await commitFile(directory, "first.txt", "first\n");
  return directory;
}

export async function commitFile(directory: string, name: string, content: string): Promise<string> {
  await writeFile(join(directory, name), content);
  git(directory, ["add", name]);
  git(directory, ["commit", "-q", "-m", `write ${name}`]);
  return git(directory, ["rev-parse", "HEAD"]);
}

/** Writes an object without git's checks, so it may be invalid. */
export function forgeObject(directory: string, type: string, content: Uint8Array | string): string {
  return git(directory, ["hash-object", "-t", type, "-w", "--literally", "--stdin"], content);
}

interface Entry {
  mode: string;
  name: string;
  id: string;
}

export function forgeTree(directory: string, entries: readonly Entry[]): string {
  const parts = entries.flatMap(({ mode, name, id }) => [
    Buffer.from(`${mode} ${name}\0`),
    Buffer.from(id, "hex"),
  ]);
  return forgeObject(directory, "tree", Buffer.concat(parts));
}

export function forgeCommit(directory: string, tree: string, parents: readonly string[] = []): string {
  const who = "A <a@example.com> 1700000000 +0000";
  const lines = [
    `tree ${tree}`,
    ...parents.map((id) => `parent ${id}`),
    `author ${who}`,
    `committer ${who}`,
    "",
    "forged",
    "",
  ];
  return forgeObject(directory, "commit", lines.join("\n"));
}

/** Every path below a directory, with the content of files, to compare it with an earlier state. */
export async function contentOf(directory: string): Promise<ReadonlyMap<string, string>> {
  const names = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map(({ parentPath, name }) => join(parentPath, name));
  return new Map(files.sort().map((file) => [file, readFileSync(file, "latin1")]));
}

/** Writes a program that creates a file when it is run. */
export async function plantProgram(path: string, canary: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\necho "$0 $*" >> '${canary}'\ncat\nexit 0\n`);
  await chmod(path, 0o755);
  return path;
}
