import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect } from "vitest";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { testEngine } from "../support/engine.js";
import { openTestSandbox, sandboxTest } from "../support/sandbox.js";

const example = fileURLToPath(new URL("../../examples/fix-failing-test/project", import.meta.url));

async function writeProject(directory: string, files: Record<string, string>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(directory, path)), { recursive: true });
    await writeFile(join(directory, path), text);
  }
  return directory;
}

/** This version's image by its own tag, since "brig/base" is whichever was built last. No network, as by default. */
const baseTest = sandboxTest
  // biome-ignore lint/correctness/noEmptyPattern: a fixture names what it needs, and this one needs nothing
  .extend("image", { scope: "file" }, async ({}) => {
    const engine = await testEngine();
    const { base } = await ensureImages(engine, { names: ["base", "toolbox"] });
    return base;
  })
  .extend("shared", { scope: "file" }, async ({ image }, { onCleanup }) => {
    const opened = await openTestSandbox({ image });
    onCleanup(() => opened[Symbol.asyncDispose]());
    return opened;
  });

describe("the base image", () => {
  baseTest("runs the tests of a Node project", async ({ sandbox, workspace }) => {
    const cwd = join(workspace, "node");
    await cp(example, cwd, { recursive: true });
    const before = await sandbox.exec(["npm", "test"], { cwd });
    expect([before.exitCode, before.stdout]).toEqual([1, expect.stringContaining("-11001 !== -11000")]);

    const money = join(cwd, "src/money.js");
    const faulty = await readFile(money, "utf8");
    await writeFile(
      money,
      faulty
        .replace("left > 0", "left !== 0")
        .replace("+= 1", "+= Math.sign(left)")
        .replace("left -= 1", "left -= Math.sign(left)"),
    );
    const after = await sandbox.exec(["npm", "test"], { cwd });
    expect([after.exitCode, after.stderr]).toEqual([0, ""]);
  });

  baseTest(
    "runs the tests of a Python project, in a virtual environment too",
    async ({ sandbox, workspace }) => {
      const cwd = await writeProject(join(workspace, "python"), {
        "pyproject.toml": '[project]\nname = "example"\nversion = "1"\n',
        "example.py": "def double(n):\n    return 2 * n\n",
        "test_example.py":
          "import sqlite3\nfrom example import double\n\ndef test_double():\n    assert double(2) == 4\n",
      });
      for (const argv of [
        ["pytest", "-q"],
        ["python3", "-m", "pytest", "-q"],
        ["python", "-m", "unittest"],
      ]) {
        const { exitCode, output } = await sandbox.exec(argv, { cwd });
        expect([exitCode, output]).toEqual([0, expect.stringMatching(/1 passed|Ran 0 tests/)]);
      }
      const script =
        "python3 -m venv .venv && .venv/bin/pip list && .venv/bin/python -c 'import example' && pip list && python3 -m pip list";
      const { exitCode, output } = await sandbox.exec(["sh", "-c", script], { cwd });
      expect([exitCode, output]).toEqual([0, expect.stringMatching(/^pytest /m)]);
    },
  );

  baseTest("builds and runs a C project", async ({ sandbox, workspace }) => {
    const cwd = await writeProject(join(workspace, "c"), {
      Makefile: [
        "CFLAGS = -O2 -g -Wall -Wextra -Werror",
        "LDLIBS = -lm -lpthread",
        "test: program checked static",
        "\t./program && ./checked && ./static",
        "checked: program.c",
        "\t$(CC) $(CFLAGS) -fsanitize=address,undefined -o $@ $< $(LDLIBS)",
        "static: program.c",
        "\t$(CC) $(CFLAGS) -static -o $@ $< $(LDLIBS)",
        "",
      ].join("\n"),
      "program.c": [
        "#include <math.h>",
        "#include <pthread.h>",
        "#include <stdio.h>",
        "static void *run(void *argument) { return argument; }",
        "int main(int argc, char **argv) {",
        "  pthread_t thread;",
        "  if (pthread_create(&thread, NULL, run, argv) || pthread_join(thread, NULL)) return 1;",
        '  return printf("%.1f\\n", sqrt(argc)) < 0;',
        "}",
        "",
      ].join("\n"),
    });
    // The leak check stops the process to look at it, which no command in a sandbox may.
    const env = { ASAN_OPTIONS: "detect_leaks=0" };
    const { exitCode, stdout, stderr } = await sandbox.exec(["make", "test"], { cwd, env });
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/(?:^1\.0\n){3}/m);
  });

  baseTest("has the small programs that agents reach for", async ({ sandbox }) => {
    const programs =
      "curl file gcc git jq less make node npm npx patch pip pip3 ps pytest python rg ssh unzip xz zip";
    const missing = await sandbox.exec([
      "sh",
      "-c",
      `for p in ${programs}; do command -v $p > /dev/null || echo $p; done`,
    ]);
    expect(missing.stdout).toBe("");
  });

  baseTest("is smaller than 450 MB", async ({ image }) => {
    const engine = await testEngine();
    expect((await engine.inspectImage(image))?.sizeBytes).toBeLessThan(450e6);
  });
});
