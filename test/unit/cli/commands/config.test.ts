import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { runProgram } from "../../../../src/cli/program.js";
import { testContext } from "../../../support/cli-context.js";

let root = "";
let file = "";

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "brig-config-"));
  for (const folder of ["home", "codex", "w/.brig"]) mkdirSync(join(root, folder), { recursive: true });
  file = join(root, "home/config.toml");
});

afterEach(() => {
  rmSync(root, { recursive: true });
});

function config(args: string[], variables: Record<string, string> = {}) {
  return brig(["config", ...args], variables);
}

async function brig(args: string[], variables: Record<string, string> = {}) {
  const context = testContext({
    variables: { BRIG_HOME: join(root, "home"), CODEX_HOME: join(root, "codex"), ...variables },
  });
  const status = (await runProgram(args, { context, commands })) ?? context.exitStatus;
  return { status, ...context.written() };
}

function row(stdout: string, key: string): string[] {
  const found = stdout.split("\n").find((line) => line.startsWith(`${key} `));
  return found?.split(/ {2,}/).slice(1) ?? [];
}

describe("brig config show", () => {
  it("prints each value and where it comes from", async () => {
    writeFileSync(
      file,
      '# mine\nmodel = "m"\nlease_seconds = 5\n[profiles.fast]\nmodel_verbosity = "low"\nmodel = "f"\n',
    );
    writeFileSync(join(root, "w/.brig/config.toml"), 'sandbox_mode = "read-only"\n');
    const { status, stdout, stderr } = await config(
      ["show", "-p", "fast", "-c", "tools.js_repl=true", "-C", join(root, "w")],
      { OPENAI_BASE_URL: "http://127.0.0.1:1/v1" },
    );
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout.split("\n")[0]).toMatch(/^KEY +VALUE +FROM$/);
    expect(row(stdout, "model")).toEqual(['"f"', `${file}:6 (profile fast)`]);
    expect(row(stdout, "model_verbosity")).toEqual(['"low"', `${file}:5 (profile fast)`]);
    expect(row(stdout, "lease_seconds")).toEqual(["5", `${file}:3`]);
    expect(row(stdout, "openai_base_url")).toEqual(['"http://127.0.0.1:1/v1"', "OPENAI_BASE_URL"]);
    expect(row(stdout, "tools.js_repl")).toEqual(["true", "-c"]);
    expect(row(stdout, "sandbox_mode")).toEqual(['"read-only"', `${root}/w/.brig/config.toml:1`]);
    expect(row(stdout, "runtime")).toEqual(["(the engine's)", "default"]);
  });

  it("prints the same as JSON", async () => {
    writeFileSync(file, 'model = "m"\nmodle = 1\n');
    const { status, stdout, stderr } = await config(["show", "--json"]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const shown = JSON.parse(stdout);
    expect(shown).toMatchObject({
      file,
      warnings: [`${file}:2: unknown key \`modle\`; did you mean \`model\`?`],
      values: {
        model: { value: "m", source: { kind: "file", file, line: 1 } },
        lease_seconds: { value: 60, source: { kind: "default" } },
        sandbox_mode: { value: null, remark: "workspace-write", source: { kind: "default" } },
      },
    });
  });

  it("warns on stderr, and lets nothing there act on the terminal", async () => {
    writeFileSync(join(root, "w/.brig/config.toml"), '"a\\u001b[2J" = 1\n');
    const { stdout, stderr } = await config(["show", "-C", join(root, "w")]);
    expect(stderr).toMatch(/^brig: .*can only tighten; ignored: /);
    expect(stdout + stderr).not.toContain("\x1b");
  });

  it("prints no secret", async () => {
    const secret = "sk-very-secret";
    writeFileSync(
      file,
      `[model_providers.a]\nexperimental_bearer_token = "${secret}"\nenv_key = "MY_KEY"\nhttp_headers = { A = "${secret}" }\n`,
    );
    const variables = { MY_KEY: secret, OPENAI_API_KEY: secret };
    for (const args of [["show"], ["show", "--json"]]) {
      const { stdout, stderr } = await config(args, variables);
      expect(stdout).toContain("model_providers.a.experimental_bearer_token");
      expect(stdout).toContain("MY_KEY");
      expect(stdout + stderr).not.toContain(secret);
    }
  });

  it.each([
    ["does not parse", "model = \n", /config\.toml:1:9: /],
    [
      "has a wrong value",
      '\nsandbox_mode = "all"\n',
      /config\.toml:2: sandbox_mode is "all": it must be read-only/,
    ],
  ])("exits with 2 when the file %s, and says where", async (_name, toml, message) => {
    writeFileSync(file, toml);
    const { status, stdout, stderr } = await config(["show"]);
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(message);
  });

  it("exits with 2 when there is no such profile", async () => {
    const { status, stderr } = await config(["show", "-p", "fast"]);
    expect(status).toBe(2);
    expect(stderr).toContain("has no profile `fast`");
  });
});

describe("brig config path", () => {
  it("prints where the configuration is, or would be", async () => {
    expect(await config(["path"])).toEqual({ status: 0, stdout: `${file}\n`, stderr: "" });
    expect(JSON.parse((await config(["path", "--json"])).stdout)).toEqual({ file, exists: false });
    const codex = join(root, "codex/config.toml");
    writeFileSync(codex, "");
    expect(JSON.parse((await config(["path", "--json"])).stdout)).toEqual({ file: codex, exists: true });
    writeFileSync(file, "");
    expect(JSON.parse((await config(["path", "--json"])).stdout)).toEqual({ file, exists: true });
  });
});

describe("brig config", () => {
  it("without more says what there is", async () => {
    const { status, stderr } = await config([]);
    expect(status).toBe(2);
    expect(stderr).toContain("show, path, init, set, unset or edit");
  });
});

describe("brig tools", () => {
  it("says of each tool that is on or off where that is set", async () => {
    writeFileSync(file, "[tools]\njs_repl = true\nview_image = false\n");
    writeFileSync(join(root, "w/.brig/config.toml"), "tools.js_repl = false\n");
    const { status, stdout } = await brig(["tools", "-C", join(root, "w"), "-c", "tools.list_dir=false"]);
    expect(status).toBe(0);
    expect(row(stdout, "js_repl").at(-1)).toBe(`tools.js_repl = false (${root}/w/.brig/config.toml:1)`);
    expect(row(stdout, "view_image").at(-1)).toBe(`tools.view_image = false (${file}:3)`);
    expect(row(stdout, "list_dir").at(-1)).toBe("tools.list_dir = false (-c)");
  });
});
