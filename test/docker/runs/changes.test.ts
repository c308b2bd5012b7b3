import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect } from "vitest";
import { runAttempt } from "../../../src/batch/runs/attempt/run-attempt.js";
import { writeChanges } from "../../../src/batch/runs/changes.js";
import { changesBelow } from "../../../src/batch/runs/changes-below.js";
import { stopSandbox } from "../../../src/sandbox/stopped-sandbox.js";
import { sandboxTest } from "../../support/sandbox.js";
import { attemptAt, openBare, shellAgent, taskOf } from "../../support/task-attempts.js";

describe("what an agent has changed", () => {
  sandboxTest("is a patch that git applies to what it was given", async ({ directory }) => {
    const given = join(directory, "given");
    for (const name of ["src", "was-directory"]) await mkdir(join(given, name), { recursive: true });
    const files = {
      ...{ "src/main.py": "one\ntwo\n", removed: "gone\n", untouched: "same\n" },
      ...{ "was-directory/x": "x\n", "was-file": "file\n" },
    };
    for (const [name, text] of Object.entries(files)) await writeFile(join(given, name), text);
    const task = await taskOf(directory, { environment: { files: given } });
    const script = [
      "sed -i s/two/three/ src/main.py; rm removed; mkdir new; echo hi > new/file; chmod +x new/file",
      "ln -s /etc/passwd new/link; head -c 2000000 /dev/zero > new/large; mkfifo new/pipe; echo x > $'new/a\\nb'",
      "mkdir .git; echo config > .git/config; echo 42 > answer.txt; printf '\\0\\1' > binary",
      "rm -r was-directory; echo f > was-directory; rm was-file; mkdir was-file; echo y > was-file/y",
    ];
    const attempt = await attemptAt(directory, { task, agent: shellAgent(script.join("\n")) });
    const { files: written, status } = await runAttempt(attempt);
    expect({ status, ...written }).toMatchObject({
      status: "scored",
      diff: "changes.diff",
      proof: "proof.json",
    });
    const patch = join(attempt.folder, "changes.diff");
    expect(await readFile(patch, "utf8")).toMatch(/^# 1 more changes are left out/m);
    await execa("git", ["apply", patch], { cwd: given });
    expect(await readFile(join(given, "src/main.py"), "utf8")).toBe("one\nthree\n");
    expect(await readFile(join(given, "binary"))).toEqual(Buffer.from([0, 1]));
    const leaves = ["(", "-type", "f", "-o", "-type", "l", ")", "-print0"];
    const { stdout } = await execa("find", [".", ...leaves], { cwd: given });
    expect(stdout.split("\0").filter(Boolean).toSorted()).toEqual([
      "./answer.txt",
      "./binary",
      "./new/a\nb",
      "./new/file",
      "./new/link",
      "./src/main.py",
      "./untouched",
      "./was-directory",
      "./was-file/y",
    ]);
    const proof = JSON.parse(await readFile(join(attempt.folder, "proof.json"), "utf8"));
    expect(proof).toMatchObject({
      policy: "task",
      differences: [],
      imageId: expect.stringContaining("sha256:"),
    });
    const verifier = JSON.parse(await readFile(join(attempt.folder, "verifier-proof.json"), "utf8"));
    expect(verifier).toMatchObject({ policy: "task", differences: [] });
  });

  sandboxTest("is compared with the image, and not longer than allowed", async ({ directory }) => {
    await using bare = await openBare(directory);
    const { sandbox } = bare;
    const script =
      "cd /etc; echo changed > hostname.old; echo x >> os-release; rm -r skel; for i in 1 2 3 4; do echo $i > z$i; done";
    await sandbox.exec(["/bin/bash", "-c", script]);
    const stopped = await stopSandbox(sandbox);
    const { imageId } = sandbox.proof;
    const changes = await changesBelow(stopped, { ...stopped, imageId, directories: ["/etc"] });
    const request = { imageId, changes, cwd: "/etc", copied: [], folder: directory };
    await writeChanges(stopped, { ...request, limits: { files: 5, bytes: 1_000_000 } });
    const patch = await readFile(join(directory, "changes.diff"), "utf8");
    expect(patch).toContain("deleted file mode 100644\n--- a/skel/.profile");
    expect(patch).toMatch(/# \d more changes are left out/);
    expect(patch.match(/^diff --git/gm)).toHaveLength(5);
  });

  sandboxTest("is found where the engine finds it, and by content", async ({ directory }) => {
    await using bare = await openBare(directory);
    const { sandbox } = bare;
    const { imageId } = sandbox.proof;
    const script = [
      // The same length, and the time of before: only its content tells.
      "cp -p /etc/issue /tmp/issue; tr a-z n-za-m < /etc/issue > /tmp/other; cat /tmp/other > /etc/issue; touch -r /tmp/issue /etc/issue",
      "rm -r /etc/skel; rm -r /etc/apt; ln -s /tmp /etc/apt; chmod 700 /etc/cron.d; rm /etc/passwd-; mkdir /etc/passwd-",
      "mkdir -p /etc/new/below; echo 1 > /etc/new/below/file; ln /etc/new/below/file /etc/new/second",
      "touch /etc/shells; echo x > /usr/share/elsewhere; rm -r /var/cache/apt",
    ];
    await sandbox.exec(["/bin/bash", "-ec", script.join("\n")]);
    const stopped = await stopSandbox(sandbox);
    const { engine, containerId } = stopped;
    const directories = ["/etc/apt", "/etc", "/var/cache/apt", "/no/such"];
    const request = { containerId, imageId, directories };
    const ofEngine = await engine.containerChanges(containerId);
    const isBelow = ({ path }: { path: string }) =>
      path.startsWith("/etc") || path.startsWith("/var/cache/apt");
    const lines = (changes: readonly { kind: string; path: string }[]) =>
      changes.map(({ kind, path }) => `${kind} ${path}`).toSorted();
    const found = await changesBelow(stopped, request);
    const ofBoth = lines(ofEngine.filter(isBelow));
    expect(ofBoth).toEqual(expect.arrayContaining(["changed /etc/shells", "deleted /etc/skel"]));
    expect(ofBoth).not.toContain("changed /etc/issue");
    // The engine also names files and directories of which only the time is another one.
    const onlyTimes = new Set(["changed /etc", "changed /etc/shells"]);
    const all = lines(found).filter((line) => !line.startsWith("deleted /etc/apt/"));
    expect(all).toEqual([...ofBoth.filter((line) => !onlyTimes.has(line)), "changed /etc/issue"].toSorted());
    expect(lines(found)).toContain("deleted /etc/apt/sources.list.d");
    for (const limits of [
      { entries: 10, bytes: 1e9, nameBytes: 1e6 },
      { entries: 1e6, bytes: 1000, nameBytes: 1e6 },
      { entries: 1e6, bytes: 1e9, nameBytes: 1000 },
    ])
      expect(lines(await changesBelow(stopped, { ...request, limits }))).toEqual(lines(ofEngine));
    expect(lines(await changesBelow(stopped, { ...request, directories: ["/"] }))).toEqual(lines(ofEngine));
  });

  sandboxTest("is no file if it is nothing", async ({ directory }) => {
    const task = await taskOf(directory);
    const attempt = await attemptAt(directory, { task, agent: shellAgent("true") });
    expect(await runAttempt(attempt)).toMatchObject({ files: { diff: null, proof: "proof.json" } });
  });
});
