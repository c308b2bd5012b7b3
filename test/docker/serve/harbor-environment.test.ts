import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { temporaryDirectory } from "../../support/sandbox.js";
import { openServed } from "../../support/served.js";
import { withReason } from "../../support/skip-reasons.js";
import { taskOf } from "../../support/task-attempts.js";
import { testProgram } from "../../support/test-program.js";

const integration = fileURLToPath(new URL("../../../integrations/harbor", import.meta.url));
const fixtures = fileURLToPath(new URL("../../fixtures/harbor", import.meta.url));
const python = await testProgram("python3");

/**
 * What Harbor's BaseEnvironment asks of an environment, each with its parameters: as of November 2026 and, before it had
 * capabilities, as properties.
 */
const asked: Record<string, string[]> = {
  type: [],
  capabilities: ["self"],
  is_mounted: ["self"],
  supports_gpus: ["self"],
  can_disable_internet: ["self"],
  _validate_definition: ["self"],
  start: ["self", "force_build"],
  stop: ["self", "delete"],
  upload_file: ["self", "source_path", "target_path"],
  upload_dir: ["self", "source_dir", "target_dir"],
  download_file: ["self", "source_path", "target_path"],
  download_dir: ["self", "source_dir", "target_dir"],
  exec: ["self", "command", "cwd", "env", "timeout_sec", "user"],
};

const listMethods = `
import ast, json, sys
found = {}
modules = []
for node in ast.walk(ast.parse(open(sys.argv[1]).read())):
    if isinstance(node, ast.ClassDef) and node.name == "BrigEnvironment":
        for one in ast.walk(node):
            if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[one.name] = {"parameters": [a.arg for a in one.args.args], "isAsync": isinstance(one, ast.AsyncFunctionDef)}
    if isinstance(node, ast.Import):
        modules += [a.name for a in node.names]
    if isinstance(node, ast.ImportFrom):
        modules.append(node.module)
print(json.dumps({"methods": found, "foreign": [m for m in modules if m.split(".")[0] not in sys.stdlib_module_names]}))
`;

describe.skipIf(python.missing !== null)(withReason("the environment for Harbor", python.missing), () => {
  it("has the methods that Harbor calls, with their parameters, and needs nothing but Harbor", async () => {
    const file = join(integration, "brig_environment.py");
    const { stdout } = await execa("python3", ["-c", listMethods, file]);
    const { methods, foreign } = JSON.parse(stdout) as {
      methods: Record<string, { parameters: string[]; isAsync: boolean }>;
      foreign: string[];
    };
    for (const [name, parameters] of Object.entries(asked))
      expect([name, methods[name]?.parameters]).toEqual([name, parameters]);
    const isAsync = Object.keys(asked).filter((name) => methods[name]?.isAsync);
    expect(isAsync).toEqual([
      "start",
      "stop",
      "upload_file",
      "upload_dir",
      "download_file",
      "download_dir",
      "exec",
    ]);
    expect(new Set(foreign)).toEqual(
      new Set(["harbor.environments.base", "harbor.environments.capabilities"]),
    );
    expect(readFileSync(file, "utf8")).toContain("token_file=");
  });

  it("runs a trial in a sandbox of a real service, and leaves nothing", async () => {
    await using directory = await temporaryDirectory();
    await using work = await temporaryDirectory();
    await writeFile(join(work.path, "Dockerfile"), "FROM brig/base\n");
    const task = { ...(await taskOf(directory.path)), name: "made-for/served" };
    await using served = await openServed({ tasks: [task] });
    const { stdout } = await execa("python3", [join(fixtures, "trial.py"), work.path, integration], {
      env: {
        BRIG_URL: served.url,
        BRIG_TOKEN: served.tokens[0],
        // Compiled Python beside the integration would be packed with it.
        PYTHONDONTWRITEBYTECODE: "1",
      },
      timeout: 110_000,
    });
    const found = JSON.parse(stdout);
    expect(found).toMatchObject({
      type: "brig",
      sandboxes: { sandboxes: [{ mode: "danger-full-access", task: null, workingDirectory: "/app" }] },
      exec: [3, "task own /tmp\nroot\n", "wrong\n"],
      user: "nobody\n/nonexistent\n",
      uid: "65534\n",
      noUser: 126,
      slow: 124,
      logs: "777\n777\n777\n",
      ran: "ran\n",
      same: ["deep/er/a b\n\u00e9.bin", "large", "run.sh"],
      down: ["deep", "empty", "large", "run.sh"],
      link: true,
      missing: "file.not-found",
      cancelled: true,
      left: [],
      wrongToken: "serve.refused",
      noImage: "image.missing",
    });
  });
});
