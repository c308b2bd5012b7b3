import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createToolRegistry } from "brigbox";
import { type Bench, compare } from "../bench.js";
import { repeat, takeTurns, timed } from "../sampling.js";

const fileCount = 10;
const lineCount = 200;
const changedLine = 100;

/** A patch that changes a line in each of ten files, against a script on the host that does the same to ten others. */
export const applyPatch: Bench = {
  name: "apply-patch",
  async run({ isQuick, openSandbox, progress, signal, workspace }) {
    await using sandbox = await openSandbox();
    const inside = new ChangingFiles(join(workspace, "apply-patch/inside"));
    const outside = new ChangingFiles(join(workspace, "apply-patch/outside"));
    await inside.create();
    await outside.create();
    const tool = createToolRegistry(sandbox, { cwd: inside.directory }).get("apply_patch");
    const patchInside = async () => {
      const input = inside.nextPatch();
      return await timed(async () => {
        const { content, success } = await tool.execute({ input });
        if (!success) throw new Error(content);
      });
    };
    const editOutside = () => outside.editNext();
    await repeat(50, patchInside);
    await repeat(50, editOutside);

    const rounds = isQuick ? 8 : 42;
    const { ours, host } = await takeTurns(
      {
        ours: { name: "apply_patch", batch: 5, sample: patchInside },
        host: { name: "readFile and writeFile on the host", batch: 5, sample: editOutside },
      },
      { rounds, signal, onRound: (round) => progress(`patches, round ${round} of ${rounds}`) },
    );
    return [
      compare(ours, host, {
        title: `a patch of ${fileCount} files`,
        unit: "ms",
        direction: "ours / rival",
        target: { kind: "at-most", value: 5 },
      }),
    ];
  },
};

/** Files with one line that says which version they are. */
class ChangingFiles {
  readonly directory: string;
  readonly #names = Array.from({ length: fileCount }, (_, index) => `file-${index}.txt`);
  #version = 0;

  constructor(directory: string) {
    this.directory = directory;
  }

  async create(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    for (const name of this.#names) await writeFile(join(this.directory, name), textOf(name));
  }

  nextPatch(): string {
    const [before, after] = this.#nextVersion();
    const hunks = this.#names.flatMap((name) => [
      `*** Update File: ${name}`,
      "@@",
      ` ${lineOf(name, changedLine - 1)}`,
      `-${before}`,
      `+${after}`,
      ` ${lineOf(name, changedLine + 1)}`,
    ]);
    return ["*** Begin Patch", ...hunks, "*** End Patch"].join("\n");
  }

  /** How long it takes as a script does it: one file after the other, and no promise that none is ever half written. */
  async editNext(): Promise<number> {
    const [before, after] = this.#nextVersion();
    return await timed(async () => {
      for (const name of this.#names) {
        const path = join(this.directory, name);
        const text = await readFile(path, "utf8");
        await writeFile(path, text.replace(`\n${before}\n`, `\n${after}\n`));
      }
    });
  }

  #nextVersion(): [before: string, after: string] {
    const before = `version ${this.#version}`;
    this.#version++;
    return [before, `version ${this.#version}`];
  }
}

function textOf(name: string): string {
  const lines = Array.from({ length: lineCount }, (_, index) => lineOf(name, index));
  lines[changedLine] = "version 0";
  return `${lines.join("\n")}\n`;
}

function lineOf(name: string, index: number): string {
  return `line ${index} of ${name}, about as long as lines are`;
}
