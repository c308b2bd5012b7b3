import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { BrigOptions } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { commitFile, createRepository, git } from "../support/git-repositories.js";
import { callDone, messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { withReason } from "../support/skip-reasons.js";
import { testProgram } from "../support/test-program.js";

const codex = await testProgram("codex");

let repository = "";
let home = "";

beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  [repository, home] = [join(directory.path, "project"), join(directory.path, "home")];
  await createRepository(repository);
  await commitFile(repository, "app.js", "one\n");
  git(repository, ["checkout", "-q", "-b", "feature"]);
  await commitFile(repository, "app.js", "one\ntwo\n");
  await writeFile(join(repository, "app.js"), "one\nthree\n");
  await mkdir(home);
});

const finding = (title: string, more: object = {}) => ({
  ...{ title, body: "It breaks.\nAlways.", confidence_score: 0.9, priority: 1 },
  code_location: { absolute_file_path: join(repository, "app.js"), line_range: { start: 2, end: 2 } },
  ...more,
});

const reviewOf = (...findings: object[]) => ({
  ...{ findings, overall_correctness: "patch is incorrect", overall_explanation: "It has a fault." },
  overall_confidence_score: 0.8,
});

/** A model that runs this command, and then says this. */
async function modelThat(says: object | string, command = "git status --short; git diff; touch made") {
  const call = callDone("one", "exec_command", { cmd: command });
  const text = typeof says === "string" ? says : JSON.stringify(says);
  const server = await startResponsesServer([respond(call), respond(messageDone(text))]);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const config = `model = "gpt-5.6"
model_provider = "scripted"
sandbox_mode = "workspace-write"
[model_providers.scripted]
name = "scripted"
base_url = "${server.url}"
wire_api = "responses"
`;
  await writeFile(join(home, "config.toml"), config);
  return server;
}

const review = (args: string[], { env, ...options }: BrigOptions = {}) =>
  brigHere(["review", ...args], {
    ...{ cwd: repository, ...options },
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", GITHUB_ACTIONS: "", ...env },
  });

describe("brig review", () => {
  it("asks for the findings of Codex's form, in a sandbox that changes nothing, and prints them", async () => {
    const server = await modelThat(reviewOf(finding("[P1] Keep two")));
    const { exitCode, stdout, stderr } = await review([]);
    expect(exitCode, stderr).toBe(0);
    expect(stdout).toBe(
      `It has a fault.\n\nReview comment:\n\n- [P1] Keep two — ${repository}/app.js:2-2\n  It breaks.\n  Always.\n`,
    );
    const [asked, answered] = server.requests.map(({ body }) => body);
    expect(JSON.stringify(asked?.input)).toContain("staged, unstaged and untracked");
    expect(asked?.text).toMatchObject({
      format: {
        strict: true,
        schema: { required: expect.arrayContaining(["findings", "overall_correctness"]) },
      },
    });
    const output = JSON.stringify(answered?.input.at(-1));
    expect(output).toContain("+three");
    expect(output).toContain("Read-only file system");
    expect(git(repository, ["status", "--short"])).toBe("M app.js");
  });

  it("prints them as JSON, and writes the same to a file", async () => {
    const found = reviewOf(finding("[P2] One", { priority: null }));
    await modelThat(`Here it is:\n${JSON.stringify(found)}\n`);
    const { exitCode, stdout } = await review(["--json", "-o", "review.json"]);
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toEqual(found);
    expect(JSON.parse(await readFile(join(repository, "review.json"), "utf8"))).toEqual(found);
  });

  it("writes through no link that lies in the way of its file, even one that was there before", async () => {
    await modelThat(reviewOf());
    const outside = join(home, "outside");
    await writeFile(outside, "mine");
    await symlink(outside, join(repository, "review.md"));
    const { exitCode, stdout } = await review(["-o", "review.md"]);
    expect([exitCode, stdout]).toEqual([2, "It has a fault.\n"]);
    expect(await readFile(outside, "utf8")).toBe("mine");
  });

  it("is what brig-codex exec review does", async () => {
    const server = await modelThat(reviewOf());
    const program = fileURLToPath(new URL("../../dist/cli/codex.js", import.meta.url));
    const args = ["exec", "review", "--base", "main", "-o", "review.md"];
    const env = { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", GITHUB_ACTIONS: "" };
    const { stdout } = await execa(process.execPath, [program, ...args], { cwd: repository, env });
    expect(stdout).toBe("It has a fault.");
    expect(await readFile(join(repository, "review.md"), "utf8")).toBe("It has a fault.");
    expect(JSON.stringify(server.requests[0]?.body.input)).toContain("git merge-base HEAD 'main'");
  });

  it.each([
    [["--base", "main"], "git merge-base HEAD 'main'"],
    [["--commit", "HEAD~1", "--title", "Write two"], "git show 'HEAD~1'"],
    [["--uncommitted", "the error paths"], "the error paths"],
    [["only what concerns time"], "only what concerns time"],
  ])("of %j says so to the model", async (args, words) => {
    const server = await modelThat(reviewOf());
    const { exitCode, stdout } = await review(args);
    expect([exitCode, stdout]).toEqual([0, "It has a fault.\n"]);
    expect(JSON.stringify(server.requests[0]?.body.input)).toContain(words);
  });

  it.each([
    [["--base", "main", "--commit", "HEAD"], "exclude each other"],
    [["--base", "main'; touch x #"], "is not the name of a branch"],
    [["--commit", "--output=x"], "is not the name of a branch"],
    [["--title", "x"], "--title is for"],
  ])("refuses %j", async (args, reason) => {
    const { exitCode, stderr } = await review(args);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(reason);
  });

  it("makes annotations, each one command and one line, and lets no text be another one", async () => {
    const hostile = "x\n::set-env name=A::b\n  ::add-mask::a\r\n##[error]no";
    await modelThat(
      reviewOf(
        finding("[P3] late,file=other.js::error::x", { priority: 3, body: hostile }),
        finding("[P0] first\n::error::y", { priority: 0 }),
        finding("[P1] elsewhere", {
          code_location: { absolute_file_path: "/etc/passwd", line_range: { start: 1, end: 1 } },
        }),
      ),
    );
    const { exitCode, stdout } = await review(["--annotations", "github"], {
      env: { GITHUB_WORKSPACE: repository },
    });
    expect(exitCode).toBe(0);
    const lines = stdout.split("\n");
    expect(lines.filter((line) => /^\s*::|##\[/.test(line))).toEqual([
      "::warning file=app.js,line=2,endLine=2,title=[P0] first %3A%3Aerror%3A%3Ay::It breaks.%0AAlways.",
      "::warning title=[P1] elsewhere::It breaks.%0AAlways.",
      "::warning file=app.js,line=2,endLine=2,title=[P3] late%2Cfile=other.js%3A%3Aerror%3A%3Ax::x%0A::set-env name=A::b%0A  ::add-mask::a%0D%0A## [error]no",
    ]);
  });

  it("prints what a model says instead of findings, and fails where a program wants them", async () => {
    await modelThat("All is well.");
    expect(await review([])).toMatchObject({ exitCode: 0, stdout: "All is well.\n" });
    await modelThat('{ "findings": 7 }');
    const failed = await review(["--json"]);
    expect(failed.exitCode).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ error: { code: "model.failed" } });
  });

  it.skipIf(codex.missing !== null)(
    withReason("prints what the real Codex makes of the same findings", codex.missing),
    async () => {
      for (const found of [
        reviewOf(finding("[P1] One")),
        reviewOf(finding("[P1] One"), finding("[P2] Two")),
        reviewOf(),
      ]) {
        await modelThat(found, "git diff");
        const { stdout } = await review([]);
        const server = await startResponsesServer([respond(messageDone(JSON.stringify(found)))]);
        onTestFinished(() => server[Symbol.asyncDispose]());
        const config = await readFile(join(home, "config.toml"), "utf8");
        await writeFile(
          join(home, "config.toml"),
          config.replace(/base_url = .*/, `base_url = "${server.url}"`),
        );
        const theirs = await execa(codex.path, ["exec", "review", "--uncommitted"], {
          ...{ cwd: repository, stdin: "ignore", reject: false },
          env: { CODEX_HOME: home, OPENAI_API_KEY: "none", TMPDIR: home },
        });
        expect(theirs.stdout.trim()).toBe(stdout.trim());
      }
    },
  );
});
