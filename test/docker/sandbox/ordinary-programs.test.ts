import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { changedPolicy } from "../../support/policies.js";
import { differs, titled } from "../../support/runtime-differences.js";
import { sandboxTest, temporaryDirectory } from "../../support/sandbox.js";

const files: Record<string, string> = {
  "package.json": '{ "name": "tiny", "private": true, "scripts": { "test": "node --test" } }\n',
  "sum.js": "exports.sum = (a, b) => a + b;\n",
  "sum.test.js":
    'require("node:test")("adds", () => require("node:assert").equal(require("./sum.js").sum(1, 2), 3));\n',
  "tiny.py": "def double(n):\n    return 2 * n\n",
  "test_tiny.py": [
    "import tempfile, threading, unittest",
    "from tiny import double",
    "",
    "class Tiny(unittest.TestCase):",
    "    def test_double(self):",
    "        self.assertEqual(double(2), 4)",
    "",
    "    def test_in_a_thread(self):",
    "        seen = []",
    "        thread = threading.Thread(target=lambda: seen.append(double(3)))",
    "        thread.start(); thread.join()",
    "        self.assertEqual(seen, [6])",
    "",
    "    def test_temporary_file(self):",
    "        with tempfile.TemporaryFile() as file:",
    "            file.write(b'x')",
    "",
  ].join("\n"),
};

/** A small project in a git repository with one commit, all of it the user's. */
async function makeProject(directory: string, user: number): Promise<void> {
  await mkdir(join(directory, "lib"));
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
  const git = (...args: string[]) =>
    promisify(execFile)("git", ["-C", directory, "-c", "user.name=T", "-c", "user.email=t@example", ...args]);
  await git("init", "-q");
  await git("add", ".");
  await git("commit", "-qm", "A tiny project");
  await promisify(execFile)("chown", ["-R", `${user}:${user}`, directory]);
}

async function run(sandbox: Sandbox, ...argv: string[]) {
  const { exitCode, stdout, stderr } = await sandbox.exec(argv);
  return { exitCode, stdout, stderr };
}

/** The suite's own user, and one that root can give files to. */
const ownUser = process.getuid?.() ?? 0;
const users = ownUser === 0 ? [0, 4242] : [ownUser];

describe.each(users)("as uid %i", (user) => {
  sandboxTest("programs of every day do their work in a small project", async ({ open, directory }) => {
    await makeProject(directory, user);
    await using elsewhere = await temporaryDirectory();
    const policyFile = await changedPolicy(elsewhere.path, { user: `${user}:${user}` });
    const sandbox = await open({ workspace: directory, policyFile });

    const listing = await run(sandbox, "ls", "-la");
    expect(listing).toMatchObject({ exitCode: 0, stderr: "" });
    expect(listing.stdout).toContain("test_tiny.py");
    expect(await run(sandbox, "stat", "-c", "%n %u %s", "sum.js")).toEqual({
      exitCode: 0,
      stdout: `sum.js ${user} ${files["sum.js"]?.length}\n`,
      stderr: "",
    });
    expect(await run(sandbox, "git", "status", "--porcelain")).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await run(sandbox, "npm", "test")).exitCode).toBe(0);
    const tested = await run(sandbox, "python3", "-m", "unittest");
    expect(tested).toMatchObject({ exitCode: 0, stderr: expect.stringMatching(/Ran 3 tests.*OK/s) });

    const edit = "sed -i s/sum/total/ sum.js && mv sum.js lib/total.js && cp -a lib copy && rm -r lib";
    expect(await run(sandbox, "sh", "-c", edit)).toMatchObject({ exitCode: 0, stderr: "" });
    const changed = await run(sandbox, "git", "status", "--porcelain");
    expect(changed).toMatchObject({ exitCode: 0, stdout: " D sum.js\n?? __pycache__/\n?? copy/\n" });
  });
});

sandboxTest(
  titled("files.link-attributes", "a long listing shows symbolic links"),
  async ({ open, directory }) => {
    await symlink("nowhere", join(directory, "link"));
    const sandbox = await open({ workspace: directory });
    const listing = await run(sandbox, "ls", "-l", "link");
    expect(listing).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("link -> nowhere") });
    const complaint = differs("files.link-attributes") ? "ls: link: Bad file descriptor\n" : "";
    expect(listing.stderr).toBe(complaint);
  },
);
