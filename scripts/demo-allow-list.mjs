// A demo of the network's rules: the scripted model of examples/allow-list works in a real container that may reach one server. Prints
// each call of brig and its output. The exit status is that of `brig run`, or 1.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const PROMPT = "get today's exchange rates";

const server = createServer((_, response) => response.end('{ "EUR": 1.09 }\n'));
server.listen(0, "127.0.0.1");
await once(server, "listening");
const folder = await realpath(await mkdtemp(join(tmpdir(), "brig-demo-")));
try {
  process.exitCode = await runDemo(server.address().port);
} finally {
  server.close();
  await rm(folder, { recursive: true, force: true });
}

async function runDemo(port) {
  const workspace = join(folder, "rates");
  await mkdir(workspace);
  const script = await readFile(join(root, "examples/allow-list/script.yaml"), "utf8");
  await writeFile(
    join(folder, "script.yaml"),
    script.replaceAll("host.internal:8080", `host.internal:${port}`),
  );
  const network = ["--network", `allowlist:host.internal:${port}`];
  const run = await brig(workspace, ["run", ...network, "--script", "../script.yaml", PROMPT]);
  const id = /^session ([0-9a-f-]{36})$/m.exec(run.output)?.[1];
  if (run.exitStatus !== 0 || id === undefined) return run.exitStatus || 1;
  for (const subject of ["proof", "egress"]) {
    const { exitStatus } = await brig(workspace, ["sessions", subject, id]);
    if (exitStatus !== 0) return exitStatus;
  }
  return 0;
}

/** Prints the call, and what it prints. */
async function brig(cwd, argv) {
  const words = argv.map((word) => (/^[\w./:-]+$/.test(word) ? word : `"${word}"`));
  process.stdout.write(`\n$ brig ${words.join(" ")}\n`);
  // In a process group of its own, so that ctrl-C reaches brig only once, through us, and brig can close the sandbox.
  // The shell joins both outputs, so that their lines stay in order.
  const call = [process.execPath, "--", join(root, "dist/cli/main.js"), ...argv];
  const child = spawn("/bin/sh", ["-c", 'exec "$@" 2>&1', "sh", ...call], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
    detached: true,
  });
  const stop = (signal) => child.kill(signal);
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"];
  for (const signal of signals) process.once(signal, stop);
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
    process.stdout.write(text);
  });
  const [code] = await once(child, "close");
  for (const signal of signals) process.off(signal, stop);
  return { exitStatus: code ?? 1, output };
}
