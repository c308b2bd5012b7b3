import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  asksForProjectDocs,
  type ProjectDocs,
  type ProjectDocsSearch,
  type ProjectFiles,
  readProjectDocs,
} from "../../../../src/agent/context/project-docs.js";
import { BrigError } from "../../../../src/errors.js";
import { MemorySandbox } from "../../../support/memory-sandbox.js";

const TWENTY_GIB = 20 * 2 ** 30;
const SEPARATOR = "\n\n--- project-doc ---\n\n";
const { files } = new MemorySandbox();

let folder: string;
let repo: string;
let cwd: string;

/** A directory for temporary files that is in nobody's repository: the search for a root goes up to "/". */
function outsideRepositories(): string {
  const isInRepository = (path: string): boolean =>
    existsSync(join(path, ".git")) || (path !== "/" && isInRepository(dirname(path)));
  return [tmpdir(), "/var/tmp", "/dev/shm"].find((path) => !isInRepository(path)) ?? tmpdir();
}

beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(outsideRepositories(), "brig-docs-")));
  repo = join(folder, "repo");
  cwd = join(repo, "packages/one");
  mkdirSync(cwd, { recursive: true });
  put(".git/HEAD", "ref: refs/heads/main\n");
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function put(path: string, text: string | Uint8Array): string {
  const whole = join(repo, path);
  mkdirSync(dirname(whole), { recursive: true });
  writeFileSync(whole, text);
  return whole;
}

function read(more: Partial<ProjectDocsSearch> = {}): Promise<ProjectDocs> {
  return readProjectDocs({ homes: [], cwd, files: () => Promise.resolve(files), ...more });
}

const textOf = async (more: Partial<ProjectDocsSearch> = {}) => (await read(more)).text;

describe("the project's files", () => {
  it("are read from the repository's root down to the working directory", async () => {
    put("AGENTS.md", "root\n");
    put("packages/AGENTS.md", "packages\n");
    put("packages/one/AGENTS.md", "one\n");
    put("packages/two/AGENTS.md", "two\n");
    expect(await read()).toEqual({ text: "root\n\n\npackages\n\n\none\n", warnings: [] });
  });

  it("are those of the nearest repository alone", async () => {
    put("AGENTS.md", "outer");
    put("packages/.git", "gitdir: ../.git/worktrees/x");
    put("packages/AGENTS.md", "inner");
    expect(await textOf()).toBe("inner");
  });

  it("are the working directory's alone where nothing marks a root, or nothing is to", async () => {
    put("AGENTS.md", "root");
    put("packages/one/AGENTS.md", "one");
    expect(await textOf({ rootMarkers: [] })).toBe("one");
    rmSync(join(repo, ".git"), { recursive: true });
    expect(await textOf()).toBe("one");
  });

  it("start where another marker is, if that is what marks a root", async () => {
    put("AGENTS.md", "root");
    put("packages/package.json", "{}");
    put("packages/AGENTS.md", "packages");
    expect(await textOf({ rootMarkers: [".hg", "package.json"] })).toBe("packages");
  });

  it("take no empty directory that cannot be written to for a repository: brig puts one where there is none", async () => {
    rmSync(join(repo, ".git"), { recursive: true });
    put("AGENTS.md", "root");
    put("packages/one/AGENTS.md", "one");
    mkdirSync(join(repo, ".git"), { mode: 0o555 });
    expect(await textOf()).toBe("one");
    expect(await textOf({ isOnHost: true })).toBe("one");
    chmodSync(join(repo, ".git"), 0o755);
    expect(await textOf()).toBe("root\n\none");
  });

  it("are one for each directory: the override, else AGENTS.md, else a fallback in its order", async () => {
    const fallbackFilenames = ["", "CLAUDE.md", "GUIDE.md"];
    put("GUIDE.md", "guide");
    put("CLAUDE.md", "claude");
    expect(await textOf()).toBeNull();
    expect(await textOf({ fallbackFilenames })).toBe("claude");
    put("AGENTS.md", "agents");
    expect(await textOf({ fallbackFilenames })).toBe("agents");
    put("AGENTS.override.md", "override");
    expect(await textOf({ fallbackFilenames })).toBe("override");
  });

  it("that are blank say nothing, and the next name is not asked for in their place", async () => {
    put("AGENTS.override.md", " \n\t\n");
    put("AGENTS.md", "hidden by the override");
    put("packages/AGENTS.md", "packages");
    expect(await read()).toEqual({ text: "packages", warnings: [] });
  });

  it("are not read with a limit of zero, nor is the sandbox asked", async () => {
    put("AGENTS.md", "root");
    const asked = () => Promise.reject(new Error("asked"));
    expect(await read({ maxBytes: 0, files: asked })).toEqual({ text: null, warnings: [] });
  });
});

describe("the limit", () => {
  it("cuts the file that crosses it and leaves out what comes after, with a warning for each", async () => {
    const root = put("AGENTS.md", "12345");
    const packages = put("packages/AGENTS.md", "67890");
    const one = put("packages/one/AGENTS.md", "x");
    expect(await read({ maxBytes: 8 })).toEqual({
      text: "12345\n\n678",
      warnings: [
        `${packages} is cut after 3 bytes: project_doc_max_bytes is 8`,
        `${one} is left out: project_doc_max_bytes is 8`,
      ],
    });
    expect(await read({ maxBytes: 11 })).toEqual({ text: "12345\n\n67890\n\nx", warnings: [] });
    expect((await read({ maxBytes: 4 })).warnings[0]).toBe(
      `${root} is cut after 4 bytes: project_doc_max_bytes is 4`,
    );
  });

  it("is not spent by blank files", async () => {
    put("AGENTS.md", " ".repeat(20));
    put("packages/AGENTS.md", "67890");
    expect(await read({ maxBytes: 5 })).toEqual({ text: "67890", warnings: [] });
  });

  it("is 32 768 bytes by default, of which a huge file is read no further", async () => {
    const path = put("AGENTS.md", "start");
    truncateSync(path, TWENTY_GIB);
    const { text, warnings } = await read();
    expect(text).toHaveLength(32_768);
    expect(warnings).toEqual([expect.stringMatching(/is cut after 32768 bytes/)]);
  });

  it("never cuts a character in two, wherever it falls", async () => {
    put("AGENTS.md", "aé€😀z");
    for (let maxBytes = 1; maxBytes <= 11; maxBytes++) {
      const { text, warnings } = await read({ maxBytes });
      expect("aé€😀z".startsWith(text ?? "?"), text ?? "").toBe(true);
      expect(warnings.filter((warning) => !warning.includes("is cut after"))).toEqual([]);
    }
  });
});

describe("a file that is none to read", () => {
  it("is replaced where it is not UTF-8, and told of", async () => {
    const path = put("AGENTS.md", Buffer.from("caf\xe9 here", "latin1"));
    expect(await read()).toEqual({
      text: "caf\ufffd here",
      warnings: [`${path} is not UTF-8 text throughout: the bytes that are not are replaced`],
    });
  });

  it.each([
    ["a directory", (path: string) => mkdirSync(path)],
    ["a FIFO", (path: string) => execFileSync("mkfifo", [path])],
  ])("is passed over where it is %s, and told of", async (_, make) => {
    make(join(repo, "AGENTS.override.md"));
    put("AGENTS.md", "agents");
    const { text, warnings } = await read();
    expect(text).toBe("agents");
    expect(warnings).toEqual([expect.stringContaining(`${repo}/AGENTS.override.md is not used: `)]);
  });

  it("is told of where it may not be read, and no other takes its place", async () => {
    const denied = new BrigError("cannot read it: permission denied", { code: "file.not-permitted" });
    put("AGENTS.override.md", "secret");
    put("AGENTS.md", "agents");
    put("packages/AGENTS.md", "packages");
    const guarded: ProjectFiles = {
      stat: files.stat,
      list: files.list,
      read: (path, options) =>
        path === join(repo, "AGENTS.override.md") ? Promise.reject(denied) : files.read(path, options),
    };
    const { text, warnings } = await read({ files: () => Promise.resolve(guarded) });
    expect(text).toBe("packages");
    expect(warnings[0]).toBe(`${repo}/AGENTS.override.md is not used: cannot read it: permission denied`);
  });

  it("is told of where the sandbox does not have it, such as a link to somewhere else", async () => {
    symlinkSync("/proc/nowhere/else/AGENTS.md", join(cwd, "AGENTS.md"));
    expect(await read({ isOnHost: true })).toEqual({
      text: null,
      warnings: [`${cwd}/AGENTS.md is not used: the sandbox, whose workspace is ${cwd}, does not have it`],
    });
  });
});

describe("a sandbox that is still starting", () => {
  const never = () => new Promise<ProjectFiles>(() => undefined);

  it("is not waited for where the host sees no such name", async () => {
    put("README.md", "x");
    put("packages/two/AGENTS.md", "two");
    expect(await read({ isOnHost: true, files: never })).toEqual({ text: null, warnings: [] });
  });

  it("is asked where there is a name, even of a link, and always where the directory is not the host's", async () => {
    const gone = () => Promise.reject(new BrigError("gone", { code: "sandbox.gone", reason: "killed" }));
    await expect(read({ files: gone })).rejects.toThrow("gone");
    symlinkSync("elsewhere", join(repo, "AGENTS.md"));
    await expect(read({ isOnHost: true, files: gone })).rejects.toThrow("gone");
  });

  it("is known beforehand to be asked or not", async () => {
    expect(await asksForProjectDocs({ cwd, isOnHost: true })).toBe(false);
    expect(await asksForProjectDocs({ cwd })).toBe(true);
    put("GUIDE.md", "x");
    expect(await asksForProjectDocs({ cwd, isOnHost: true, fallbackFilenames: ["GUIDE.md"] })).toBe(true);
    expect(
      await asksForProjectDocs({ cwd, isOnHost: true, fallbackFilenames: ["GUIDE.md"], maxBytes: 0 }),
    ).toBe(false);
  });

  it("passes on that it is gone", async () => {
    put("AGENTS.md", "x");
    const broken: ProjectFiles = {
      ...files,
      stat: files.stat,
      list: files.list,
      read: () => Promise.reject(new BrigError("gone", { code: "sandbox.gone", reason: "killed" })),
    };
    await expect(read({ files: () => Promise.resolve(broken) })).rejects.toThrow("gone");
  });
});

describe("the user's own file", () => {
  const home = (name: string) => join(folder, name);

  function own(path: string, text: string): void {
    mkdirSync(dirname(home(path)), { recursive: true });
    writeFileSync(home(path), text);
  }

  it("is the first that says something, of brig's home and then of Codex's, trimmed", async () => {
    const homes = [home("brig"), home("codex")];
    own("codex/AGENTS.md", "\n codex \n");
    expect(await textOf({ homes })).toBe("codex");
    own("brig/AGENTS.md", "brig");
    expect(await textOf({ homes })).toBe("brig");
    own("brig/AGENTS.override.md", "  \n");
    expect(await textOf({ homes })).toBe("brig");
    own("brig/AGENTS.override.md", "override");
    expect(await textOf({ homes })).toBe("override");
  });

  it("comes before the project's, with a line between them", async () => {
    own("brig/AGENTS.md", "own");
    put("AGENTS.md", "root");
    expect(await textOf({ homes: [home("brig")] })).toBe(`own${SEPARATOR}root`);
    expect(await textOf({ homes: [home("brig")], maxBytes: 0 })).toBe("own");
  });

  it("is passed over with a warning where it is none to read", async () => {
    own("codex/AGENTS.md", "codex");
    mkdirSync(home("brig"));
    execFileSync("mkfifo", [home("brig/AGENTS.md")]);
    mkdirSync(home("brig/AGENTS.override.md"));
    expect(await read({ homes: [home("brig"), home("codex")] })).toEqual({
      text: "codex",
      warnings: [
        `${home("brig/AGENTS.override.md")} is not used: it is a directory`,
        `${home("brig/AGENTS.md")} is not used: it is not a regular file`,
      ],
    });
  });

  it("is cut where it is huge", async () => {
    own("brig/AGENTS.md", "x");
    truncateSync(home("brig/AGENTS.md"), TWENTY_GIB);
    const { text, warnings } = await read({ homes: [home("brig")] });
    expect(text).toHaveLength(256 * 1024);
    expect(warnings).toEqual([`${home("brig/AGENTS.md")} is cut after 262144 bytes`]);
  });
});
