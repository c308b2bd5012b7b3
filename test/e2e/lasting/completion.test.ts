import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { program } from "../../support/cli.js";
import { lastingPlace, upIn } from "../../support/lasting.js";
import { withReason } from "../../support/skip-reasons.js";
import { Terminal } from "../../support/terminal.js";
import { testProgram } from "../../support/test-program.js";

const zsh = await testProgram("zsh");
const fish = await testProgram("fish");

const shells = [
  {
    name: "bash",
    missing: null,
    argv: ["bash", "--norc", "--noprofile", "-i"],
    load: "source <(brig completion bash)",
  },
  {
    name: "zsh",
    missing: zsh.missing,
    argv: [zsh.path, "-f", "-i"],
    load: "autoload -Uz compinit; compinit -u -D; source <(brig completion zsh)",
  },
  {
    name: "fish",
    missing: fish.missing,
    argv: [fish.path, "--no-config", "-i"],
    load: "brig completion fish | source",
  },
];

/** What is typed before Tab, and the line that it has to become. */
const lines = [
  ["brig att", "brig attach "],
  ["brig stop wi", "brig stop wise-owl "],
  ["brig exec --in wi", "brig exec --in wise-owl "],
  ["brig exec --in=wi", "brig exec --in=wise-owl "],
  ["brig exec -s dan", "brig exec -s danger-full-access "],
  ["brig exec --det", "brig exec --detach "],
  ["brig image pru", "brig image prune "],
  ["brig cp wi", "brig cp wise-owl:"],
  ["brig exec --policy my-p", "brig exec --policy my-policy.toml "],
  ["brig up -C my-d", "brig up -C my-directory/"],
  // Nothing that is typed is run before the line is.
  ["brig stop $(touch ran) wi", "brig stop $(touch ran) wise-owl "],
] as const;

describe.each(shells)("completion in $name", ({ missing, argv, load }) => {
  it.skipIf(missing !== null)(withReason(`completes a line`, missing), async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "wise-owl");
    const bin = join(place.home, "..", "bin");
    await mkdir(bin);
    await writeFile(join(bin, "brig"), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, {
      mode: 0o755,
    });
    await writeFile(join(place.workspace, "my-policy.toml"), "");
    await mkdir(join(place.workspace, "my-directory"));
    const env = {
      BRIG_HOME: place.home,
      HOME: join(place.home, ".."),
      PATH: `${bin}:${process.env.PATH}`,
      PS1: "> ",
      TERM: "xterm",
    };
    const terminal = await Terminal.openProgram(argv, { cwd: place.workspace, env });
    onTestFinished(() => terminal[Symbol.asyncDispose]());
    terminal.type(`${load}; echo loa''ded\r`);
    await terminal.waitForScreen(/^loaded/m);
    for (const [typed, line] of lines) {
      terminal.type(`${typed}\t`);
      // What follows shows whether there is a space.
      await terminal.waitForScreen(new RegExp(`${literally(line.trimEnd())}[^\\n]*$`, "m"));
      terminal.type("X");
      await terminal.waitForScreen(new RegExp(`${literally(line)}X`));
      terminal.type("\u0015");
    }
    expect(existsSync(join(place.workspace, "ran"))).toBe(false);
  });
});

function literally(text: string): string {
  return text.replaceAll(/[^\w ]/g, "\\$&");
}
