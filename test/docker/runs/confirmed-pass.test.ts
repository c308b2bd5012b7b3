import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { AttemptStage } from "../../../src/batch/runs/attempt/attempt.js";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { passKindOf } from "../../../src/batch/runs/results/attempt-outcome.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, shellAgent, type TaskParts, taskOf } from "../../support/task-attempts.js";

/** The tests run in the container in which the agent ran the script. */
async function tried(directory: string, { agent, ...parts }: TaskParts & { agent: string }) {
  const verifier = { ...parts.verifier, mode: "shared" as const };
  const task = await taskOf(directory, { ...parts, verifier });
  const stages: [AttemptStage, number | undefined][] = [];
  const attempt = await attemptAt(directory, {
    task,
    agent: shellAgent(agent),
    onStage: (stage, grading) => stages.push([stage, grading?.number]),
  });
  const result = await runAttempt(attempt);
  const { confirmation, findings = [] } = result.steps[0]?.verification ?? {};
  const files = await readdir(attempt.folder);
  return { result, kind: passKindOf(result), confirmation, findings, stages, files };
}

const passIf = (check: string) => `#!/bin/bash
${check} && r=1 || r=0
echo $r > /logs/verifier/reward.txt`;
const ANSWER = '[ "$(cat /app/answer.txt)" = 42 ]';

describe("a pass in the agent's container", () => {
  sandboxTest("is clean if a fresh one with nothing but the work passes as well", async ({ directory }) => {
    const files = join(directory, "files");
    await mkdir(files);
    await writeFile(join(files, "given"), "given");
    const agent = `rm given; mkdir -p deep; echo 42 > deep/answer; ln -s deep/answer answer.txt; chmod 700 deep
      echo 1 > /srv/report; echo more > /etc/other.conf`;
    const testScript = passIf(
      `${ANSWER} && [ ! -e given ] && [ "$(stat -c %a deep)" = 700 ] && [ -s /srv/report ]`,
    );
    const artifacts = [{ source: "/srv/report", destination: null, exclude: [] }];
    const given = { agent, testScript, environment: { files }, step: { artifacts } };
    const { result, kind, confirmation, stages, files: left } = await tried(directory, given);
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(confirmation).toMatchObject({ outcome: "clean", gradings: 1, paths: [] });
    expect(kind).toBe("shared");
    expect(stages.at(-1)).toEqual(["confirm", 1]);
    expect(left).not.toContain(".work");
  });

  sandboxTest("names what it rests on elsewhere, and nothing else", async ({ directory }) => {
    const agent = `echo 42 > answer.txt
      for i in 1 2 3 4 5 6 7 8 9; do echo $i > /srv/decoy-$i; done; rm /etc/motd; mkdir -p /opt/own/deep
      printf '#!/bin/sh\\ncat /opt/own/deep/word\\n' > /usr/local/bin/new-tool; chmod 755 /usr/local/bin/new-tool; echo word > /opt/own/deep/word`;
    const testScript = passIf(`${ANSWER} && [ "$(new-tool)" = word ]`);
    const { result, kind, confirmation } = await tried(directory, { agent, testScript });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(confirmation).toMatchObject({
      outcome: "outside",
      paths: ["/opt/own", "/usr/local/bin/new-tool"],
      isSmallest: true,
    });
    expect(kind).toBe("shared-outside");
  });

  sandboxTest(
    "is not taken for one of the work because its tests have changed the work",
    async ({ directory }) => {
      const agent = `printf '#!/bin/sh\\necho 42 > /app/answer.txt\\n' > /opt/helper; chmod 755 /opt/helper`;
      const testScript = passIf(`{ [ ! -x /opt/helper ] || /opt/helper; } && ${ANSWER}`);
      const { result, confirmation } = await tried(directory, { agent, testScript });
      expect(result.reward).toBe(1);
      expect(confirmation).toMatchObject({ outcome: "outside", paths: ["/opt/helper"], gradings: 2 });
    },
  );

  sandboxTest("is not asked about where the working directory is all there is", async ({ directory }) => {
    const given = { agent: "echo 42 > /answer", testScript: passIf("[ -e /answer ]") };
    const { kind, confirmation } = await tried(directory, { ...given, environment: { workdir: "/" } });
    expect(confirmation).toMatchObject({ outcome: "unknown", gradings: 0 });
    expect(kind).toBe("shared-unconfirmed");
    const failed = await tried(directory, { agent: "true", testScript: passIf("false") });
    expect([failed.confirmation, failed.kind]).toEqual([null, null]);
  });
});

describe("a program that the agent left running", () => {
  const agent = `echo 42 > index.html; nohup python3 -m http.server 8765 --bind 127.0.0.1 > /dev/null 2>&1 &
    for i in $(seq 100); do curl -s http://127.0.0.1:8765/ && break; sleep 0.1; done`;
  const testScript = passIf('[ "$(curl -s http://127.0.0.1:8765/index.html)" = 42 ]');
  const step = { artifacts: [] };
  const named = expect.stringMatching(/^"python3.* -m http\.server 8765.*" \(port 8765\)/);

  sandboxTest("is ended before the tests, and named with its port", async ({ directory }) => {
    const { result, findings } = await tried(directory, { agent, testScript, step });
    expect(result).toMatchObject({ status: "scored", reward: 0 });
    expect(findings).toEqual([named]);
    expect(findings[0]).toContain("was ended before the tests");
  });

  sandboxTest("goes on where the task says so, and a pass rests on it", async ({ directory }) => {
    const { result, findings, confirmation } = await tried(directory, {
      agent,
      testScript,
      step,
      verifier: { keepsServices: true },
    });
    expect(result).toMatchObject({ status: "scored", reward: 1 });
    expect(findings).toEqual([named]);
    expect(result.steps[0]?.verification?.notes).toEqual(findings);
    expect(confirmation).toMatchObject({
      outcome: "outside",
      paths: [],
      message: expect.stringContaining("8765"),
    });
  });
});
