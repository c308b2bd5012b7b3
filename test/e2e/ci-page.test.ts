import { cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { runAction } from "../support/composite-action.js";
import { commitFile, createRepository, git } from "../support/git-repositories.js";
import { callDone, messageDone, respond, startResponsesServer } from "../support/responses-server.js";
import { temporaryDirectory } from "../support/sandbox.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page = await readFile(join(root, "docs/ci.md"), "utf8");
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\``, "gm"))].map(([, text = ""]) => text);

interface GithubStep {
  id?: string;
  uses?: string;
  with?: Record<string, string>;
  run?: string;
  env?: Record<string, string>;
}

let place = "";
let workspace = "";
let env: Record<string, string> = {};

/** A project with tests and tasks of a batch, and a model that finds one fault in it. */
beforeEach(async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory[Symbol.asyncDispose]());
  place = directory.path;
  workspace = join(place, "project");
  await createRepository(workspace);
  const manifest = { name: "project", scripts: { test: "test -f src/app.js && echo tested" } };
  await commitFile(workspace, "package.json", JSON.stringify(manifest));
  await mkdir(join(workspace, "src"));
  await mkdir(join(workspace, "tasks"));
  await cp(join(root, "examples/tasks/messy-csv"), join(workspace, "tasks/messy-csv"), { recursive: true });
  git(workspace, ["update-ref", "refs/remotes/origin/main", "HEAD"]);
  await commitFile(workspace, "src/app.js", "one\ntwo\n");
  const line_range = { start: 2, end: 2 };
  const found = {
    findings: [
      {
        ...{ title: "[P1] Keep the second line", body: "It breaks.", confidence_score: 0.9, priority: 1 },
        code_location: { absolute_file_path: join(workspace, "src/app.js"), line_range },
      },
    ],
    ...{ overall_correctness: "patch is incorrect", overall_explanation: "No." },
    overall_confidence_score: 1,
  };
  const server = await startResponsesServer(({ body }) => {
    const input = JSON.stringify(body.input);
    const isAnswered = input.includes("function_call_output");
    if (!isAnswered) return respond(callDone("one", "exec_command", { cmd: "git log --oneline" }));
    return respond(messageDone(body.text === undefined ? "It writes one file." : JSON.stringify(found)));
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  env = {
    ...{ HOME: join(place, "person"), BRIG_HOME: join(place, "home"), CODEX_HOME: join(place, "codex") },
    ...{ CI: "true", OPENAI_API_KEY: "key-of-the-job", OPENAI_BASE_URL: server.url },
  };
  await mkdir(join(place, "person"));
});

async function line(script: string, more: Record<string, string> = {}): Promise<string> {
  const text = script.replace(/(npm install .*) brigbox$/, `$1 ${root}`);
  const { exitCode, stdout, stderr } = await execa("bash", ["-eo", "pipefail", "-c", text], {
    ...{ cwd: workspace, env: { ...env, ...more }, stdin: "ignore", reject: false },
  });
  expect(exitCode, `${script}\n${stdout}\n${stderr}`).toBe(0);
  return stdout;
}

async function expectReports(): Promise<void> {
  expect(await readFile(join(workspace, "run/junit.xml"), "utf8")).toMatch(/tests="1" failures="0"/);
  const review = JSON.parse(await readFile(join(workspace, "review.json"), "utf8"));
  expect(review.findings).toHaveLength(1);
}

it("the workflow for GitHub does what the page says", { timeout: 600_000 }, async () => {
  const [workflow = ""] = blocks("yml");
  const jobs: { steps: GithubStep[] }[] = Object.values(parse(workflow).jobs);
  const steps: Record<string, Record<string, string>> = {};
  const fill = (values: Record<string, string> = {}) =>
    Object.fromEntries(
      Object.entries(values).map(([name, text]) => [
        name,
        text.replace(/\$\{\{ (.*?) \}\}/g, (_, expression: string) => {
          const [, id = "", output = ""] = /^steps\.(\w+)\.outputs\.([\w-]+)$/.exec(expression) ?? [];
          if (id !== "") return steps[id]?.[output] ?? "";
          const known: Record<string, string> = {
            "secrets.OPENAI_API_KEY": "key-of-the-job",
            "github.base_ref": "main",
          };
          return known[expression] ?? expect.unreachable(expression);
        }),
      ]),
    );
  const printed: string[] = [];
  let paths: string[] = [];
  for (const [at, { id, uses, run, ...step }] of jobs.flatMap(({ steps }) => steps).entries()) {
    if (uses?.startsWith("brig-sandbox/brig@")) {
      const ended = await runAction({
        ...{ action: root, directory: join(place, `job-${at}`), workspace, cache: join(place, "cache") },
        inputs: { package: root, cache: "false", "allow-users": "anna", ...fill(step.with) },
        env: { ...env, GITHUB_ACTOR: "anna", OPENAI_API_KEY: "" },
      });
      expect(ended.failed, ended.log).toBeNull();
      printed.push(ended.outputs["final-message"] ?? "");
      paths = ended.paths;
      if (id !== undefined) steps[id] = ended.outputs;
    } else if (run !== undefined) {
      const variables = { PATH: [...paths, process.env.PATH].join(":"), GITHUB_WORKSPACE: workspace };
      printed.push(await line(run, { ...variables, ...fill(step.env) }));
    } else expect(uses).toMatch(/^actions\/checkout@/);
  }
  expect(await readFile(join(workspace, "summary.md"), "utf8")).toBe("It writes one file.\n");
  expect(printed.join("\n")).toContain("\ntested\n");
  const [annotation = ""] = blocks("text");
  expect(printed.join("\n")).toContain(annotation.trim());
  expect(await readFile(join(workspace, "run/junit.xml"), "utf8")).toMatch(/tests="1" failures="0"/);
});

it("the script for GitLab does what the page says", { timeout: 600_000 }, async () => {
  const { tests } = parse(blocks("yml")[1] ?? "");
  const script: string[] = tests.script;
  expect(script.length).toBeGreaterThan(5);
  await line(script.join("\n").replace(/^(npm install .*) brigbox$/m, `$1 ${root}`));
  await expectReports();
  expect(await readFile(join(workspace, tests.artifacts.paths[0]), "utf8")).toBe("It writes one file.");
});

it("the stages for Jenkins do what the page says", { timeout: 600_000 }, async () => {
  const [pipeline = ""] = blocks("groovy");
  const commands = [...pipeline.matchAll(/\bsh '([^']+)'/g)].map(([, command = ""]) => command);
  expect(commands.length).toBeGreaterThan(4);
  for (const command of commands) await line(command, { PATH: `${env.HOME}/.local/bin:${process.env.PATH}` });
  await expectReports();
});
