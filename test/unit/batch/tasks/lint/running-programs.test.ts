import { describe, expect, it } from "vitest";
import { lintTasks } from "../../../../../src/batch/tasks/lint/lint-tasks.js";
import { directoryWith } from "../../../../support/task-directories.js";

interface Given {
  test: string;
  solve?: string | null;
  verifier?: string;
}

const RULE = "needs-running-program";

/** The level at which a task of Harbor gets the finding; null if it does not. */
async function levelOf({ test, solve = "true", verifier = "" }: Given): Promise<string | null> {
  const root = await directoryWith({
    "task.toml": `schema_version = "1.4"\nartifacts = ["/app"]\ntask = { name = "t" }\nagent = { timeout_sec = 60 }\n[verifier]\n${verifier}\n`,
    "instruction.md": "Serve a page.",
    "environment/Dockerfile": "FROM debian:12\n",
    "tests/test.sh": `#!/bin/bash\npython3 -m pytest /tests && echo 1 > /logs/verifier/reward.txt\n`,
    "tests/test_outputs.py": test,
    ...(solve !== null && { "solution/solve.sh": `#!/bin/bash\n${solve}\n` }),
  });
  return await found(root);
}

async function found(root: string): Promise<string | null> {
  const { findings } = await lintTasks([root], { cwd: "/", variables: {} });
  return findings.find(({ rule }) => rule === RULE)?.level ?? null;
}

const ASKS = 'import requests\nassert requests.get("http://localhost:8080/").status_code == 200\n';

describe("tests that need a program of the agent", () => {
  it.each([
    ASKS,
    'socket.create_connection(("127.0.0.1", 6379))',
    'subprocess.run(["bash", "-c", "redis-cli -h localhost ping"])',
    'subprocess.run("pgrep -x nginx", shell=True)',
    'os.system("curl -sf localhost:3000/health")',
    'os.system("ssh -p 2222 user@localhost true")',
  ])("are an error where the solution starts one: %s", async (test) => {
    expect(await levelOf({ test, solve: "cd /app\npython3 server.py > log 2>&1 &" })).toBe("error");
  });

  it.each([
    "nohup node server.js",
    "service nginx start",
    "systemctl enable --now redis",
    "/etc/init.d/ssh restart",
    "tmux new-session -d -s web ./run",
    "nginx",
    "redis-server --daemonize yes",
    "pg_ctlcluster 15 main start",
    "docker compose up -d",
  ])("are an error where the solution starts one by %s", async (solve) => {
    expect(await levelOf({ test: ASKS, solve })).toBe("error");
  });

  it("are an error without a solution, and nothing is known where it is not seen to start any", async () => {
    expect(await levelOf({ test: ASKS, solve: null })).toBe("error");
    expect(await levelOf({ test: ASKS, solve: "make serve" })).toBeNull();
    expect(await levelOf({ test: ASKS, solve: "a && b; echo x 2>&1" })).toBeNull();
  });

  it.each([
    `${ASKS}\nserver = subprocess.Popen(["python3", "/app/server.py"])\n`,
    `import threading, http.server\nhttp.server.HTTPServer(("localhost", 8080), None)\n${ASKS}`,
    'assert open("/app/out.txt").read() == "see http://example.org"',
    "# http://localhost:8080\nassert True",
  ])("are none that start it themselves, or ask nothing: %j", async (test) => {
    expect(await levelOf({ test, solve: "python3 server.py &" })).toBeNull();
  });

  it("are in order where the task keeps what runs, and named for separate verifiers as well", async () => {
    const kept = { test: ASKS, solve: "python3 server.py &", verifier: "keep_services = true" };
    expect(await levelOf(kept)).toBeNull();
    expect(await levelOf({ ...kept, verifier: 'environment_mode = "separate"' })).toBe("error");
    const both = { ...kept, verifier: 'environment_mode = "separate"\nkeep_services = true' };
    await expect(levelOf(both)).resolves.toBeNull();
  });

  it("are found in tasks of Terminal-Bench, also in the script", async () => {
    const task = (script: string, keep = "") => ({
      "task.yaml": `instruction: Serve a page.\n${keep}`,
      Dockerfile: "FROM debian:12\n",
      "docker-compose.yaml": "services:\n  client:\n    build: .\n    command: sleep infinity\n",
      "run-tests.sh": `#!/bin/bash\n${script}\npytest $TEST_DIR\n`,
      "tests/test_outputs.py": "def test_x():\n    pass\n",
      "solution.sh": "#!/bin/bash\npython3 server.py &\n",
    });
    expect(await found(await directoryWith(task("curl -sf http://localhost:8080/")))).toBe("error");
    expect(
      await found(await directoryWith(task("python3 /app/server.py &\ncurl http://localhost:8080/"))),
    ).toBeNull();
    expect(
      await found(await directoryWith(task("curl http://localhost/", "keep_services: true\n"))),
    ).toBeNull();
  });
});
