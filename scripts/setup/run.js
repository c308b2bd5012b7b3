import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** How many of the last lines of a failed program its error message shows. */
const shownLines = 30;

/** Runs a program in the repository and passes on each line that it prints. If it fails, the error has all `output`. */
export async function run([program, ...argv], { onLine, signal }) {
  const child = spawn(program, argv, { cwd: root, signal, stdio: ["ignore", "pipe", "pipe"] });
  const printed = [];
  const ended = new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on("line", (line) => {
      printed.push(line);
      onLine(line);
    });
  }
  const status = await ended;
  if (status !== 0) {
    const error = new Error(
      [`${program} ${argv.join(" ")} failed`, ...printed.slice(-shownLines)].join("\n"),
    );
    throw Object.assign(error, { output: printed.join("\n") });
  }
}
