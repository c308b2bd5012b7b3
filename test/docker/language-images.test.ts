import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { LANGUAGES, type Language } from "../../src/sandbox/images/definition.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { sandboxTest } from "../support/sandbox.js";

let engine: Engine;
let tags: Record<Language, string>;

beforeAll(async () => {
  engine = await testEngine();
  tags = await ensureImages(engine, { names: LANGUAGES });
}, 1_200_000);

/** A program in each language, and the command that compiles and runs it. None of them may need a network. */
const programs: Record<Language, { files: Record<string, string>; command: string }> = {
  node: {
    files: { "hello.cc": '#include <iostream>\nint main() { std::cout << "compiled\\n"; }\n' },
    command: 'g++ -o /tmp/hello hello.cc && /tmp/hello && node -p "process.version"',
  },
  python: {
    files: { "hello.c": '#include <Python.h>\nint main(void) { puts("compiled"); return 0; }\n' },
    command:
      "gcc $(python3-config --includes) -o /tmp/hello hello.c && /tmp/hello && python3 -m venv /tmp/v && /tmp/v/bin/pip --version",
  },
  go: {
    files: {
      "go.mod": "module example.com/hello\n\ngo 1.19\n",
      "main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("compiled") }\n',
      "main_test.go": 'package main\n\nimport "testing"\n\nfunc TestNothing(t *testing.T) {}\n',
    },
    command: "go run . && go vet ./... && go test ./...",
  },
  rust: {
    files: {},
    command:
      "cargo init --quiet --vcs none --name hello && cargo run --quiet && cargo clippy --quiet && cargo fmt --check && cargo test --quiet && echo compiled",
  },
};

describe("the image of a language", () => {
  for (const language of LANGUAGES)
    sandboxTest(`compiles and runs a program without a network: ${language}`, async ({ open, directory }) => {
      const { files, command } = programs[language];
      for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text);
      const sandbox = await open({ workspace: directory, image: `brig/${language}` });
      const ended = await sandbox.exec(["sh", "-c", command]);
      expect(ended.exitCode, ended.stderr).toBe(0);
      expect(ended.stdout).toContain("compiled");
    });

  it("is listed under its name, and is no other's", async () => {
    const ended = await brigHere(["image", "ls", "--json"]);
    const listed: { name: string; tags: string[]; isCurrent: boolean }[] = JSON.parse(ended.stdout);
    for (const language of LANGUAGES)
      expect(listed).toContainEqual(
        expect.objectContaining({
          name: language,
          isCurrent: true,
          tags: expect.arrayContaining([tags[language], `brig/${language}:latest`]),
        }),
      );
    const others = listed.filter(({ name }) => name === "base").flatMap((one) => one.tags);
    expect(others.filter((tag) => !tag.startsWith("brig/base:"))).toEqual([]);
  });

  it("is built once, on the default image", async () => {
    const lines: string[] = [];
    const again = await ensureImages(engine, { names: ["go"], onProgress: (line) => lines.push(line) });
    expect(again.go).toBe(tags.go);
    expect(lines).toEqual([]);
    const { base } = await ensureImages(engine, { names: ["base"] });
    const below = await engine.imageHistory(base);
    const own = await engine.imageHistory(tags.go);
    expect(own.slice(-below.length).map(({ createdBy }) => createdBy)).toEqual(
      below.map(({ createdBy }) => createdBy),
    );
  });
});
