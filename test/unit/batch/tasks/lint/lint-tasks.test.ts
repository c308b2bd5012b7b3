import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { lintTasks } from "../../../../../src/batch/tasks/lint/lint-tasks.js";
import { rules } from "../../../../../src/batch/tasks/lint/rules.js";
import { directoryWith, type Files } from "../../../../support/task-directories.js";

const settings = `
schema_version = "1.4"
artifacts = ["/app/out.txt"]
task = { name = "t" }
agent = { timeout_sec = 60 }
verifier = { environment_mode = "separate" }
`;

/** Nothing is found in these files. */
const sound = {
  "task.toml": `${settings}environment = { network_mode = "no-network" }\n`,
  "instruction.md": "Write out.txt.",
  "environment/Dockerfile": "FROM debian:12\nCOPY data /app/data\n",
  "environment/data/input.csv": "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w\n",
  "solution/solve.sh": "#!/bin/bash\nsort /app/data/input.csv > /app/out.txt # and more words\n",
  "tests/test.sh": "#!/bin/bash\ncmp /app/out.txt /tests/expected && echo 1 > /logs/verifier/reward.txt\n",
  "tests/test_outputs.py": "# Compares every line of the output with the expected one.\nprint('done')\n",
  "tests/input.csv": "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w\n",
};

type Changes = Readonly<Record<string, string | undefined>>;

async function findings(changes: Changes, base: Changes = sound): Promise<string[]> {
  const files = Object.entries({ ...base, ...changes }).filter(([, content]) => content !== undefined);
  const root = await directoryWith(Object.fromEntries(files) as Files);
  const report = await lintTasks([root], { cwd: "/", variables: {} });
  return report.findings.map(({ level, rule, file }) => [level, rule, file].filter(Boolean).join(" "));
}

const toml = (environment: string) => ({ "task.toml": settings + environment });
const script = (text: string) => ({
  "tests/test.sh": `#!/bin/bash\n${text}\necho 1 > /logs/verifier/reward.txt\n`,
});
const open = toml('environment = { network_mode = "public" }\n');

describe("lint", () => {
  it("needs no variable of this machine, such as a key", async () => {
    const environment = `environment = { network_mode = "no-network", env = { KEY = "$\{SOME_KEY}", ODD = "$\{__proto__}" } }\n`;
    expect(await findings(toml(environment))).toEqual(["warning reader-warning", "warning reader-warning"]);
  });

  it("says what can be done about a fault", async () => {
    const root = await directoryWith({ ...sound, "task.toml": 'task = { name = "a b" }\n' } as Files);
    const { findings: found } = await lintTasks([root], { cwd: "/", variables: {} });
    expect(found).toMatchObject([
      { rule: "unusable", hint: expect.stringContaining("a name consists of letters") },
    ]);
  });

  it("finds nothing in a sound task", async () => {
    expect(await findings({})).toEqual([]);
  });

  it.each<[string, Changes, string[]]>([
    ["a fault of the task", { "task.toml": "x = " }, ["error unusable task.toml"]],
    [
      "a key that is left aside",
      { "task.toml": `${sound["task.toml"]}other = 1\n` },
      ["warning reader-warning"],
    ],
    [
      "a Dockerfile for a recent BuildKit",
      {
        "environment/Dockerfile":
          "FROM debian:12\nRUN <<EOF\ntrue\nEOF\nCOPY --parents data /app/data\nCOPY <<EOF /app/home\n$HOME\nEOF\n",
      },
      ["warning needs-buildkit environment/Dockerfile", "warning needs-buildkit environment/Dockerfile"],
    ],
    [
      "a size of the disk",
      toml('environment = { network_mode = "no-network", storage_mb = 500 }\n'),
      ["warning disk-limit task.toml"],
    ],
    [
      "scripts with the line ends of Windows",
      {
        "solution/solve.sh": "#!/bin/bash\r\nsort /app/data/input.csv > /app/out.txt\r\n",
        "tests/test.sh": "#!/bin/bash\r\ntrue\r\necho 1 > /logs/verifier/reward.txt\r\n",
        "tests/helper.sh": "one line, and no more",
      },
      ["error carriage-returns tests/test.sh", "error carriage-returns solution/solve.sh"],
    ],
    [
      "scripts with the line ends of Windows in the verifier's image",
      {
        "tests/Dockerfile": "FROM debian:12\nCOPY . /tests/\n",
        "tests/test.sh": "#!/bin/bash\r\necho 1 > /logs/verifier/reward.txt\r\n",
      },
      ["error carriage-returns tests/test.sh"],
    ],
    [
      "a script with the line ends of Windows that prepares a step",
      {
        "task.toml": `${settings}environment = { network_mode = "no-network" }\nsteps = [{ name = "one" }]\n`,
        "steps/one/instruction.md": "Write out.txt.",
        "steps/one/workdir/setup.sh": "#!/bin/bash\r\ntouch /app/ready\r\n",
        "steps/one/workdir/other.txt": "text of Windows\r\n",
        "steps/one/solution/solve.sh": sound["solution/solve.sh"],
        "steps/one/tests/test.sh": sound["tests/test.sh"],
      },
      ["error carriage-returns steps/one/workdir/setup.sh"],
    ],
    ["no solution", { "solution/solve.sh": undefined }, ["warning no-solution"]],
    [
      "no time limit",
      { "task.toml": sound["task.toml"].replace("{ timeout_sec = 60 }", "{}") },
      ["warning no-timeout"],
    ],
    [
      "a shared verifier",
      { "task.toml": sound["task.toml"].replace("separate", "shared") },
      ["warning shared-verifier"],
    ],
    [
      "no artifacts",
      { "task.toml": sound["task.toml"].replace('"/app/out.txt"', "") },
      ["error no-artifacts"],
    ],
    ["an open network", open, ["warning verifier-network"]],
    ["pip without a network", script("pip install pytest"), ["error tests-install tests/test.sh"]],
    [
      "apt with a network",
      { ...open, ...script("apt-get -qq install -y curl") },
      ["warning verifier-network", "warning tests-install tests/test.sh"],
    ],
    [
      "a script from the network",
      script("curl -LsSf https://example.com/install.sh | sh"),
      ["error tests-install tests/test.sh"],
    ],
    [
      "tests that unpickle",
      { "tests/check.py": 'import pickle\npickle.load(open("/app/out.txt", "rb"))\n' },
      ["warning loads-code"],
    ],
    [
      "tests that load YAML as data, and pickle nothing",
      { "tests/check.py": "# pickle.load\nyaml.load(text, Loader=yaml.SafeLoader)\nyaml.safe_load(text)\n" },
      [],
    ],
    ["uvx", script("uvx -p 3.13 -w pytest pytest /tests"), ["error tests-install tests/test.sh"]],
    [
      "no reward",
      { "tests/test.sh": "#!/bin/bash\ncmp /app/out.txt x\n" },
      ["error no-reward tests/test.sh"],
    ],
    [
      "a Dockerfile that copies tests",
      { "environment/Dockerfile": "FROM debian:12\nCOPY --chown=1:1 \\\n  data tests/ \\\n  /app/\n" },
      ["error grader-in-image environment/Dockerfile"],
    ],
    [
      "a Dockerfile that adds the solution",
      { "environment/Dockerfile": 'FROM debian:12\nADD ["x/solve.sh", "/opt/"]\n' },
      ["error grader-in-image environment/Dockerfile"],
    ],
    [
      "a copy of the tests",
      { "environment/data/helper.py": sound["tests/test_outputs.py"] },
      ["error grader-in-image environment/data/helper.py"],
    ],
    [
      "a copy of the solution",
      { "environment/.cache": sound["solution/solve.sh"] },
      ["error grader-in-image environment/.cache"],
    ],
    ["an instruction without the file", { "instruction.md": "Sort it." }, ["warning unnamed-files"]],
    [
      "an image without a version",
      {
        ...toml('environment = { network_mode = "no-network", docker_image = "registry:5000/x" }\n'),
        "environment/Dockerfile": undefined,
      },
      ["warning moving-image"],
    ],
  ])("finds %s", async (_, changes, expected) => {
    expect(await findings(changes)).toEqual(expected);
  });

  it.each<[string, Changes]>([
    [
      "a shared verifier that looks at a server",
      {
        "task.toml": sound["task.toml"].replace("separate", "shared"),
        ...script("curl -s http://localhost:8080/ > /app/out.txt"),
      },
    ],
    ["a comment about installing", script("# pip install pytest happens in the image")],
    ["a download from the container itself", script("wget -q http://127.0.0.1:80/x")],
    [
      "artifacts that the agent publishes itself",
      {
        "task.toml": sound["task.toml"].replace('"/app/out.txt"', ""),
        ...script("test -s /logs/artifacts/out.txt"),
      },
    ],
    [
      "what another stage of the build copies",
      {
        "environment/Dockerfile":
          "FROM a:1 AS b\nFROM debian:12\nCOPY --from=b /src/tests /app/tests\n# COPY tests /tests\n",
      },
    ],
    [
      "an image with a digest",
      {
        ...toml(
          `environment = { network_mode = "no-network", docker_image = "x@sha256:${"0".repeat(64)}" }\n`,
        ),
        "environment/Dockerfile": undefined,
      },
    ],
  ])("finds nothing in %s", async (_, changes) => {
    expect(await findings(changes)).toEqual([]);
  });

  it("names the step", async () => {
    const root = await directoryWith({
      "t/task.toml": `${settings}environment = { network_mode = "no-network" }\n[[steps]]\nname = "one"\n`,
      "t/environment/Dockerfile": "FROM debian:12",
      "t/steps/one/instruction.md": "Write out.txt.",
      "t/steps/one/tests/test.sh": sound["tests/test.sh"],
    });
    const { findings: found } = await lintTasks([root], { cwd: "/", variables: {} });
    expect(found.map(({ message }) => message)).toEqual([
      "step one: there is no solution, so nobody can show that the task can be solved",
    ]);
  });

  it("looks at rows too", async () => {
    const root = await directoryWith({
      "a.jsonl": ["true", "exit 0", "pip install x && pytest", "pytest -q"]
        .map((check) => JSON.stringify({ prompt: "p", check, timeout_sec: 1 }))
        .join("\n"),
    });
    const { tasks, findings: found } = await lintTasks(["a.jsonl"], { cwd: root, variables: {} });
    expect(tasks).toBe(4);
    expect(found.map(({ source, rule, level }) => [source.at(-1), level, rule])).toEqual([
      ["1", "error", "trivial-check"],
      ["2", "error", "trivial-check"],
      ["3", "error", "tests-install"],
    ]);
  });

  it("tells of a task of a benchmark with its own format only what keeps brig from running it", async () => {
    const root = await directoryWith({
      "t/task.yaml": "instruction: Write out.txt.\ndifficulty: easy\nparser_name: pytest\n",
      "t/Dockerfile": "FROM debian:12\nCOPY tests /tests\nRUN --security=insecure true\n",
      "t/run-tests.sh": "#!/bin/bash\npip install pytest\n",
      "t/solution.sh": "#!/bin/bash\ntouch out.txt\n",
      "t/tests/test_outputs.py": "def test_it(): pass\n",
    });
    const { tasks, findings: found } = await lintTasks([root], { cwd: "/", variables: {} });
    expect(tasks).toBe(1);
    expect(found.filter(({ rule }) => rule !== "reader-warning")).toMatchObject([
      {
        rule: "needs-buildkit",
        level: "warning",
        file: "Dockerfile",
        message: expect.stringMatching(/^line 3: RUN --security needs the BuildKit of Docker 23/),
      },
    ]);
  });

  it("is stopped by the signal", async () => {
    const root = await directoryWith(
      Object.fromEntries(Object.entries(sound).map(([path, text]) => [`t/${path}`, text])),
    );
    const signal = AbortSignal.abort(new Error("enough"));
    await expect(lintTasks([root], { cwd: "/", variables: {}, signal })).rejects.toThrow("enough");
  });

  it("has rules that the documentation describes, at the same level", async () => {
    const page = await readFile(new URL("../../../../../docs/tasks.md", import.meta.url), "utf8");
    for (const { name, level } of rules) expect(page).toContain(`| \`${name}\` | ${level} |`);
  });
});
