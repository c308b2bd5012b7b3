import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, type TaskParts, taskOf } from "../../support/task-attempts.js";

const users = [null, "nobody"];
const nobody = 65534;

/** The agent runs the script as this user, and may write to /app. */
async function tried(
  directory: string,
  { agent, user, ...parts }: TaskParts & { agent: string; user: string | null },
) {
  const phase = { timeoutSec: 60, user, network: null };
  const task = await taskOf(directory, { ...parts, step: { ...parts.step, agent: phase } });
  const attempt = await attemptAt(directory, { task, agent: shellAgent(agent) });
  const result = await runAttempt(attempt);
  return { ...attempt, result, verification: result.steps[0]?.verification };
}

const READS_ANSWER = `#!/bin/bash
cat /app/answer.txt
[ "$(cat /app/answer.txt)" = 42 ] && r=1 || r=0
echo $r > /logs/verifier/reward.txt`;

describe.each(users)("an agent that runs as %s and does not solve the task", (user) => {
  sandboxTest(
    "gains nothing by writing the reward itself, before or for ever after",
    async ({ directory }) => {
      const agent = `
      mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo '{"reward":1}' > /logs/verifier/reward.json
      (setsid bash -c 'while :; do mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt; sleep 0.01; done' &)
      mkdir -p /logs/artifacts/verifier; echo 1 > /logs/artifacts/reward.txt; echo 41 > answer.txt`;
      const silent = { agent, user, testScript: "#!/bin/sh\nexit 0" };
      const { result, verification } = await tried(directory, silent);
      expect(result).toMatchObject({ status: "scored", reward: 0 });
      expect(verification).toMatchObject({ verifier: "no-reward", exitCode: 0 });
      const honest = await tried(directory, { ...silent, testScript: READS_ANSWER });
      expect(honest.result.reward).toBe(0);
    },
  );

  sandboxTest("gains nothing by replacing programs that the tests use", async ({ directory }) => {
    const agent = `
      for name in cat sh bash python3; do
        for place in /usr/local/bin /usr/bin /bin; do
          printf '#!/usr/bin/env -S perl\\nprint 42;' > $place/.new && chmod 755 $place/.new && mv $place/.new $place/$name
        done
      done 2>/dev/null
      echo 'import os; os._exit(0)' > /usr/lib/python3/dist-packages/sitecustomize.py
      echo 41 > answer.txt`;
    const { result, folder } = await tried(directory, { agent, user, testScript: READS_ANSWER });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(await readFile(join(folder, "test-output.txt"), "utf8")).toBe("41\n");
  });

  sandboxTest("finds neither tests nor solution in its container", async ({ directory }) => {
    const agent =
      "ls -d /tests /solution /logs/* > answer.txt 2>/dev/null; grep -rl reward.txt /proc/*/environ >> answer.txt";
    const { folder } = await tried(directory, { agent, user, testScript: READS_ANSWER });
    expect(await readFile(join(folder, "artifacts/answer.txt"), "utf8")).toBe(
      "/logs/agent\n/logs/artifacts\n/logs/verifier\n",
    );
  });
});

const OF_EVERY_KIND = `
mkdir -p out/deep; cd out; echo good > deep/good.txt
ln -s /etc/passwd symbolic; ln -s /logs/verifier up; ln deep/good.txt hard; mkfifo fifo
echo x > $'new\\nline'; echo x > $'esc\\e[2Jape'; echo x > 'back\\slash'; echo x > $'bad\\xff'
echo run > setuid; chmod 4755 setuid`;

describe.each(users)("artifacts of an agent that runs as %s", (user) => {
  const artifacts = [{ source: "out", destination: null, exclude: [] }];

  sandboxTest(
    "reach host and verifier only as files and directories with plain names",
    async ({ directory }) => {
      const testScript = `#!/bin/bash
cd /app/out; find . -printf '%p %y %m\\n' | LC_ALL=C sort; echo 1 > /logs/verifier/reward.txt`;
      const given = { agent: OF_EVERY_KIND, user, testScript, step: { artifacts } };
      const { folder, verification, result } = await tried(directory, given);
      expect(result.reward).toBe(1);
      const kept = (await readdir(join(folder, "artifacts/out"))).toSorted();
      // Which of two names of one file is the link depends on the order in which the engine reads them.
      const isHardAlone = kept.includes("hard");
      expect(kept).toEqual(isHardAlone ? ["deep", "hard", "setuid"] : ["deep", "setuid"]);
      const seen = (await readFile(join(folder, "test-output.txt"), "utf8")).split("\n");
      expect(seen).toContain("./setuid f 755");
      expect(seen.filter((line) => / [^fd] /.test(line))).toEqual([]);
      const findings = verification?.findings.join("\n") ?? "";
      for (const name of [
        "symbolic",
        "up",
        "fifo",
        "new\\nline",
        "esc\\u001b",
        "back\\\\slash",
        "bad",
        "setuid",
      ])
        expect(findings).toContain(`/app/out/${name}`);
      expect(findings).toContain("is a hard link");
    },
  );

  sandboxTest("are cut off where they become too large, and keep what came before", async ({ directory }) => {
    const agent = "mkdir -p out; echo first > out/a; truncate -s 20G out/b; echo last > out/c";
    const { folder, verification, result } = await tried(directory, { agent, user, step: { artifacts } });
    expect(result.status).toBe("scored");
    expect(verification?.findings).toEqual([
      '"/app/out" is not taken whole: all artifacts together may have 4294967296 bytes',
    ]);
    expect(await readdir(join(folder, "artifacts/out"))).not.toContain("b");
  });

  sandboxTest("that are links are not followed, wherever they lead", async ({ directory }) => {
    const agent = "ln -s /etc/passwd answer.txt; mv answer.txt answer.txt";
    const { folder, verification } = await tried(directory, { agent, user });
    expect(await readdir(join(folder, "artifacts"))).toEqual(["published"]);
    expect(verification?.findings).toEqual(['"/app/answer.txt" is a symbolic link, which is not followed']);
  });

  sandboxTest("that were removed from the image are removed for the verifier too", async ({ directory }) => {
    const source = user === null ? "/usr/share/common-licenses" : "/app";
    const agent = user === null ? "cd /usr/share/common-licenses && rm BSD Apache-2.0" : "true";
    const testScript = "#!/bin/sh\nls /usr/share/common-licenses; echo 1 > /logs/verifier/reward.txt";
    const step = { artifacts: [{ source, destination: null, exclude: ["Apache-*"] }] };
    const { folder } = await tried(directory, { agent, user, testScript, step });
    const seen = (await readFile(join(folder, "test-output.txt"), "utf8")).split("\n");
    expect(seen.includes("BSD")).toBe(user !== null);
    expect(seen).toContain("Apache-2.0");
  });
});

describe("a reward", () => {
  const asNobody = (script: string) =>
    `python3 -c 'import os,sys; os.setgid(${nobody}); os.setuid(${nobody}); os.execvp("sh", ["sh", "-c", sys.argv[1]])' '${script}'`;

  sandboxTest(
    "cannot be written by code of the agent that the tests run as another user",
    async ({ directory }) => {
      const testScript = `#!/bin/bash
${asNobody("sh /app/answer.txt")}
ls -ld /logs/verifier; echo 0 > /logs/verifier/reward.txt`;
      const agent =
        "echo 'echo 1 > /logs/verifier/reward.txt; echo 1 > /logs/verifier/reward.json; id -u' > answer.txt";
      const { result, folder } = await tried(directory, { agent, user: null, testScript });
      expect(result.reward).toBe(0);
      const output = await readFile(join(folder, "test-output.txt"), "utf8");
      expect(output).toContain(`\n${nobody}\n`);
      expect(output).toMatch(/^drwx------ .* root root .*\/logs\/verifier$/m);
      expect(output.match(/Permission denied/g)).toHaveLength(2);
    },
  );

  sandboxTest.for([
    [
      "of another user",
      `chmod 777 /logs/verifier; ${asNobody("echo 1 > /logs/verifier/reward.txt")}`,
      "belongs to user",
    ],
    [
      "from before the tests",
      "echo 1 > /logs/verifier/reward.txt; touch -d 2020-01-01 /logs/verifier/reward.txt",
      "before the tests",
    ],
    [
      "from the future",
      "echo 1 > /logs/verifier/reward.txt; touch -d 2090-01-01 /logs/verifier/reward.txt",
      "after the tests",
    ],
    ["that is a link", "echo 1 > /tmp/r; ln -s /tmp/r /logs/verifier/reward.txt", "not a regular file"],
    [
      "that is a directory",
      "mkdir /logs/verifier/reward.json; echo 1 > /logs/verifier/reward.txt",
      "not a regular file",
    ],
    ["of a hundred megabytes", "truncate -s 100M /logs/verifier/reward.json", "bytes"],
  ] as const)("%s does not count", async ([, script, reason], { directory }) => {
    const testScript = `#!/bin/bash\n${script}\n`;
    const { result, verification } = await tried(directory, { agent: "true", user: null, testScript });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(verification).toMatchObject({ verifier: "tampered" });
    expect(verification?.message).toContain(reason);
  });

  sandboxTest("is 0 if the tests take too long, or print no end", async ({ directory }) => {
    const testScript =
      "#!/bin/bash\necho 1 > /logs/verifier/reward.txt; setsid sleep 1000 & yes | head -c 40000000; sleep 1000";
    const verifier = { timeoutSec: 5 };
    const { result, verification, folder } = await tried(directory, {
      agent: "true",
      user: null,
      testScript,
      verifier,
    });
    expect(result.reward).toBe(0);
    expect(verification).toMatchObject({ verifier: "timed-out" });
    const { length } = await readFile(join(folder, "test-output.txt"));
    expect(length).toBeLessThan(17 * 1024 * 1024);
  });
});
