import { chmod, readdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { BrigError } from "../../errors.js";
import { errnoOf, systemReason } from "../../lib/errno.js";
import { makeDirectory } from "../../lib/files/make-directory.js";
import { isTaskName, nameRule } from "./values.js";

/** Writes a new task, whose name is that of the directory. Returns the paths of its files, relative to it. */
export async function initTask(directory: string): Promise<string[]> {
  const name = basename(directory);
  if (!isTaskName(name))
    throw usage(`${JSON.stringify(name)} cannot be the name of a task`, { hint: nameRule });
  try {
    await makeDirectory(directory);
    if ((await readdir(directory)).length > 0)
      throw usage(`${directory} is not empty`, { hint: "name a directory that does not exist yet" });
    for (const [path, text] of Object.entries(taskTemplate)) await writeNew(join(directory, path), text);
  } catch (cause) {
    if (cause instanceof BrigError || errnoOf(cause) === undefined) throw cause;
    throw usage(`cannot write to ${directory}: ${systemReason(cause)}`, { cause });
  }
  return Object.keys(taskTemplate);
}

async function writeNew(file: string, text: string): Promise<void> {
  await makeDirectory(dirname(file));
  await writeFile(file, text, { flag: "wx" });
  if (text.startsWith("#!")) await chmod(file, 0o755);
}

function usage(message: string, options: { hint?: string; cause?: unknown }): BrigError {
  return new BrigError(message, { code: "usage.invalid", ...options });
}

const taskToml = `# A task in Harbor's format.
schema_version = "1.4"

# What the verifier gets. Nothing else that the agent makes reaches it.
artifacts = ["/app/report.txt"]

[metadata]
difficulty = "easy"
category = "example"
tags = ["example"]

[environment]
# The image of the agent's container. To build one instead, remove this line and write environment/Dockerfile.
docker_image = "brig/base"
# The working directory. Without a Dockerfile, the files in environment/ are copied to it.
workdir = "/app"
cpus = 1
memory_mb = 512
network_mode = "no-network"

[agent]
timeout_sec = 300

[verifier]
# The tests run in a container of their own, which the agent has never seen.
environment_mode = "separate"
timeout_sec = 60
`;

const instruction = `/app/events.txt has one line for each event of a server: the time, the level and a message.

Write the number of events with the level ERROR to /app/report.txt, as one line that has only the number.
`;

const events = `09:00:00 INFO started
09:00:02 INFO listening
09:01:17 ERROR cannot open the queue
09:01:18 WARN trying again
09:01:19 ERROR cannot open the queue
09:01:21 INFO the queue is open, after 2 times ERROR
09:14:40 WARN slow request
09:20:03 ERROR request without a body
09:31:55 INFO stopping
`;

const solveScript = `#!/bin/bash
# What the agent "oracle" does, to show that the task can be solved.
set -eu
awk '$2 == "ERROR"' /app/events.txt | wc -l > /app/report.txt
`;

const testScript = `#!/bin/bash
# Runs as root in the verifier's container, with this directory at /tests. Only the file with the reward counts, not how
# this script ends. It reads what the agent wrote and never runs it. Code of the agent would have to run as another user,
# who cannot write to /logs/verifier.
expected=3
reward=0
if [ -f /app/report.txt ] && [ ! -L /app/report.txt ]; then
  reported=$(head -c 100 /app/report.txt | tr -d '[:space:]\\000')
  echo "reported: $reported, expected: $expected"
  [ "$reported" = "$expected" ] && reward=1
fi
echo "$reward" > /logs/verifier/reward.txt
`;

/** The files of a new task, by path. */
const taskTemplate: Readonly<Record<string, string>> = {
  "task.toml": taskToml,
  "instruction.md": instruction,
  "environment/events.txt": events,
  "solution/solve.sh": solveScript,
  "tests/test.sh": testScript,
};
