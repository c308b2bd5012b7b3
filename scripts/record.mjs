// Draws docs/interactive.svg: runs a conversation with a scripted model on a copy of examples/fix-failing-test in a real container, and
// draws the screen while brig asks for an approval. Needs the built command line, util-linux's `script` and git.
import { execFileSync } from "node:child_process";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { openScreen } from "./record/screen.js";
import { renderSvg } from "./record/svg.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const example = join(root, "examples/fix-failing-test");
const picture = join(root, "docs/interactive.svg");
// A fixed path, because it appears in the picture.
const folder = join(tmpdir(), "tidy-invoice");

await mkdir(folder);
try {
  const project = join(folder, "project");
  await prepare(project);
  await writeFile(picture, await record(project));
} finally {
  await rm(folder, { recursive: true, force: true });
}

async function prepare(project) {
  await cp(join(example, "project"), project, { recursive: true });
  const git = (...args) => execFileSync("git", args, { cwd: project });
  git("init", "--quiet");
  git("add", ".");
  git("-c", "user.name=brig", "-c", "user.email=brig@localhost", "commit", "--quiet", "-m", "Begin");
}

async function record(project) {
  const home = join(folder, "home");
  const argv = [
    process.execPath,
    "--",
    join(root, "dist/cli/main.js"),
    "--script",
    join(example, "conversation.yaml"),
  ];
  const { CI: _ci, NO_COLOR: _noColor, ...env } = process.env;
  const screen = openScreen(argv, {
    rows: 73,
    cols: 100,
    cwd: project,
    env: { ...env, BRIG_HOME: home, CODEX_HOME: home },
  });
  try {
    await screen.waitFor(/^›\s*\nworkspace-write/m);
    screen.type("A test fails. Find out why, fix it, and show that all pass.\r");
    await screen.waitFor(/All tests pass now\.[\s\S]*^›\s*\n/m);
    screen.type("Thanks. Commit it, please.\r");
    await screen.waitFor(/Run it\?[\s\S]*waiting for you 2 s|waiting for you 2 s[\s\S]*Run it\?/);
    // Leaves out durations, which are different each time.
    const svg = renderSvg(screen.terminal, { title: "brig", hide: [/ · [\d.]+ m?s$/g] });
    screen.type("n");
    await screen.waitFor(/Then I leave it to you\.[\s\S]*^›\s*\n/m);
    screen.type("\x04");
    const exitStatus = await screen.end();
    if (exitStatus !== 0) throw new Error(`brig ended with ${exitStatus}`);
    return svg;
  } finally {
    screen.close();
  }
}
