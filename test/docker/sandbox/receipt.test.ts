import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, chown, lstat, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, vi } from "vitest";
import type { Receipt } from "../../../src/sandbox/receipt/receipt.js";
import type { Sandbox } from "../../../src/sandbox/sandbox.js";
import { promised } from "../../guarantees.js";
import { changedPolicy, engineDefaultPolicy } from "../../support/policies.js";
import { differs, isGvisor, titled } from "../../support/runtime-differences.js";
import { sandboxTest, temporaryDirectory } from "../../support/sandbox.js";

afterEach(() => vi.restoreAllMocks());

/** `path: reasons` of what lies below a directory. */
function lines({ findings }: Receipt, directory: string): Record<string, string> {
  return Object.fromEntries(
    findings.map(({ path, reasons }) => [path.slice(directory.length + 1), reasons.join(" ")]),
  );
}

const sha256 = (content: string | Buffer) => createHash("sha256").update(content).digest("hex");

/** 200 000 names for four files: as many inodes would take a busy disk minutes. */
const makeTree = `import os
for d in range(400):
  os.mkdir(f"d{d}")
  first = f"d{d - d % 100}/0"
  for f in range(500): os.link(first, f"d{d}/{f}") if d % 100 or f else os.mknod(first)`;

/** Null for what is no regular file. */
async function hashOnHost(path: string): Promise<string | null> {
  return (await lstat(path)).isFile() ? sha256(await readFile(path)) : null;
}

describe("the receipt of a session", () => {
  for (const uid of [0, 1234])
    sandboxTest(
      promised("kept.receipt", `names what runs by itself later, with hashes, as uid ${uid}`),
      async ({ open, directory }) => {
        await chown(directory, uid, uid);
        await mkdir(join(directory, ".github/workflows"), { recursive: true });
        await writeFile(join(directory, ".github/workflows/old.yml"), "");
        await writeFile(join(directory, "Makefile"), "all:\n");
        await writeFile(join(directory, "package.json"), "{}");
        for (const path of [".github", ".github/workflows", "package.json"])
          await chown(join(directory, path), uid, uid);
        vi.spyOn(process, "getuid").mockReturnValue(uid);
        vi.spyOn(process, "getgid").mockReturnValue(uid);
        const sandbox = await open({ workspace: directory });
        await sandbox.exec([
          "sh",
          "-c",
          `cd ${directory}; echo '{"scripts":{}}' >package.json; echo x >.github/workflows/new.yml; mkdir -p a/.vscode docs b.git
           echo x >a/.vscode/tasks.json; echo x >a/.envrc; echo x >a/evil.pth; echo x >docs/hooks; echo x >main.c
           echo '*.c filter=tidy' >.gitattributes; echo x >.gitlab-ci.yml; echo all: >docs/Makefile; echo x >docs/conftest.py
           mkdir .husky; echo x >.husky/pre-commit
           git init -q nested; cp /bin/true nested/.git/hooks/post-commit; ln -s /etc/passwd .bashrc
           mkdir -p b.git/objects b.git/refs b.git/hooks; echo x >b.git/HEAD; echo x >b.git/hooks/pre-push; mkfifo conftest.py`,
        ]);
        const receipt = await sandbox.close();
        expect(receipt).toMatchObject({ omitted: 0, incomplete: null });
        expect(lines(receipt, directory)).toEqual({
          ".bashrc": "runs",
          ".gitattributes": "runs",
          ".github/workflows/new.yml": "runs",
          ".gitlab-ci.yml": "runs",
          ".husky/pre-commit": "runs",
          "a/.envrc": "runs",
          "a/.vscode/tasks.json": "runs",
          "a/evil.pth": "runs",
          "b.git": "repository",
          "b.git/hooks/pre-push": "runs",
          "docs/Makefile": "runs",
          "docs/conftest.py": "runs",
          "nested/.git": "repository",
          "nested/.git/config": "runs",
          "nested/.git/hooks/post-commit": "runs",
          "package.json": "runs",
        });
        expect(receipt.findings.find(({ path }) => path.endsWith("package.json"))).toMatchObject({
          sha256: sha256('{"scripts":{}}\n'),
          uid,
          sizeBytes: 15,
          isNeutralised: false,
        });
        for (const finding of receipt.findings) expect(finding.sha256).toBe(await hashOnHost(finding.path));
      },
    );

  sandboxTest.skipIf(differs("receipt.devices"))(
    titled(
      "receipt.devices",
      "with all that an engine gives takes setuid bits, capabilities and devices away and says so",
    ),
    async ({ open, directory }) => {
      await using policies = await temporaryDirectory();
      const policyFile = await engineDefaultPolicy(policies.path);
      vi.spyOn(process, "getuid").mockReturnValue(1234);
      const sandbox = await open({ workspace: directory, policyFile });
      const { exitCode, output } = await sandbox.exec([
        "sh",
        "-c",
        `for name in suid sgid capable; do cp /bin/true $name && chown 1234 $name; done; chmod 4755 suid; chmod 2755 sgid
         mknod device c 1 3; mknod block b 7 0; echo x >foreign; chown 4321 foreign
         python3 -c 'import os; os.setxattr("capable", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))'`,
      ]);
      expect(output).toBe("");
      expect(exitCode).toBe(0);
      const receipt = await sandbox.close();
      expect(lines(receipt, directory)).toEqual({
        suid: "setuid",
        sgid: "setuid",
        capable: "capabilities",
        device: "device owner",
        block: "device owner",
        foreign: "owner",
      });
      const dangerous = receipt.findings.filter(({ reasons }) => reasons.join() !== "owner");
      expect(dangerous.every(({ isNeutralised }) => isNeutralised)).toBe(true);
      for (const name of ["suid", "sgid"])
        expect((await lstat(join(directory, name))).mode & 0o7777).toBe(0o755);
      const getcap =
        "import os, errno\ntry: os.getxattr('capable', 'security.capability')\nexcept OSError as e: print(errno.errorcode[e.errno])";
      const { stdout } = spawnSync("python3", ["-c", getcap], { cwd: directory, encoding: "utf8" });
      expect(stdout).toBe("ENODATA\n");
      for (const name of ["device", "block"])
        await expect(lstat(join(directory, name))).rejects.toMatchObject({ code: "ENOENT" });
    },
  );

  sandboxTest("names what links and renamed directories bring", async ({ open, directory }) => {
    for (const path of ["build", ".vscode", "sub/.husky"])
      await mkdir(join(directory, path), { recursive: true });
    for (const path of ["build/tasks.json", ".vscode/mine.json", "sub/.husky/x", "plain"])
      await writeFile(join(directory, path), "{}");
    const first = await open({ workspace: directory });
    await first.exec(["sh", "-c", `cd ${directory}; touch .vscode/x && rm .vscode/x; echo >.vscode/new`]);
    expect(lines(await first.close(), directory)).toEqual({ ".vscode/new": "runs" });
    const second = await open({ workspace: directory });
    await second.exec([
      "sh",
      "-c",
      `cd ${directory}; mv .vscode old; mv build .vscode; touch .vscode/x && rm .vscode/x; mv sub other; ln -s old .github; ln -s old vscode`,
    ]);
    expect(lines(await second.close(), directory)).toEqual({
      ".github": "runs",
      ".vscode/tasks.json": "runs",
      "other/.husky/x": "runs",
    });
  });

  sandboxTest("names each kind once, however many there are of another", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    await sandbox.exec([
      "sh",
      "-c",
      `cd ${directory}; mkdir -p a z/.vscode; i=0; while [ $i -lt 700 ]; do : >a/$i.pth; i=$((i+1)); done; : >z/.vscode/tasks.json; : >z/CLAUDE.md`,
    ]);
    const { findings, omitted, counts } = await sandbox.close();
    expect(findings).toHaveLength(500);
    expect(findings[0]?.path).toBe(join(directory, "z/.vscode/tasks.json"));
    expect(findings.at(-1)).toMatchObject({
      path: join(directory, "z/CLAUDE.md"),
      obeyedBy: expect.stringMatching(/Claude/),
    });
    expect([omitted, counts]).toEqual([202, [{ name: "*.pth", count: 700 }]]);
  });

  sandboxTest(
    "leaves a repository that the user made meanwhile without what git would run",
    async ({ open, directory }) => {
      const git = (...args: string[]) =>
        spawnSync("git", ["-c", "safe.directory=*", "-C", join(directory, "sub"), ...args], {
          env: { PATH: process.env.PATH, HOME: directory, GIT_CONFIG_NOSYSTEM: "1" },
        });
      const sandbox = await open({ workspace: directory });
      await sandbox.exec(["true"]);
      await mkdir(join(directory, "sub"));
      git("init", "-q");
      const canary = join(directory, "canary");
      await sandbox.exec([
        "sh",
        "-c",
        `cd ${directory}/sub/.git; printf '[core]\\n\\tfsmonitor = touch ${canary}; false\\n' >>config
       mkdir -p hooks; printf '#!/bin/sh\\ntouch ${canary}\\n' >hooks/post-commit; chmod +x hooks/post-commit`,
      ]);
      const { findings } = await sandbox.close();
      const neutralised = findings.filter(({ isNeutralised }) => isNeutralised).map(({ path }) => path);
      expect(neutralised.toSorted()).toEqual([
        join(directory, "sub/.git/config"),
        join(directory, "sub/.git/hooks/post-commit"),
      ]);
      git("status");
      git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x");
      await expect(lstat(canary)).rejects.toMatchObject({ code: "ENOENT" });
      expect(String(git("log", "--format=%s").stdout)).toBe("x\n");
    },
  );

  sandboxTest("is made when nothing can change any more: what ran is ended", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    const running = sandbox.exec(["sleep", "600"]);
    const rejected = expect(running).rejects.toMatchObject({ code: "sandbox.gone", reason: "closed" });
    await sandbox.exec([
      "sh",
      "-c",
      "(setsid sh -c 'trap \"\" TERM; while :; do date +%N >Makefile; done' >/dev/null 2>&1 &) ; sleep 0.2",
    ]);
    const { findings } = await sandbox.close();
    await rejected;
    expect(findings.map((finding) => finding.sha256)).toEqual([
      await hashOnHost(join(directory, "Makefile")),
    ]);
    await expect(sandbox.exec(["true"])).rejects.toMatchObject({ code: "sandbox.gone" });
  });

  sandboxTest("says where it could not look, and how much it left out", async ({ open, directory }) => {
    const sandbox = await open({ workspace: directory });
    await sandbox.exec([
      "sh",
      "-c",
      "i=0; while [ $i -lt 520 ]; do mkdir d$i; echo >d$i/Makefile; i=$((i+1)); done",
    ]);
    await mkdir(join(directory, "closed"));
    await chmod(join(directory, "closed"), 0);
    await chown(join(directory, "closed"), 4321, 4321);
    const receipt = await sandbox.close();
    expect(receipt.findings).toHaveLength(500);
    expect(receipt.omitted).toBeGreaterThanOrEqual(20);
    expect(receipt.incomplete).toBe("closed");
  });

  // On so small a part of a processor gVisor would be busy with itself.
  sandboxTest.skipIf(isGvisor)(
    "ends in time in a tree of 200 000 files, and says so when it did not get through [not on gVisor: on so small a part of a processor it would be busy with itself]",
    async ({ open, directory, skip }) => {
      await using policies = await temporaryDirectory();
      expect(spawnSync("python3", ["-c", makeTree], { cwd: directory }).status).toBe(0);
      const closeInTime = async (sandbox: Sandbox) => {
        const started = performance.now();
        const receipt = await sandbox.close();
        expect(performance.now() - started).toBeLessThan(10_000);
        return receipt;
      };

      const slow = await open({
        workspace: directory,
        policyFile: await changedPolicy(policies.path, { cpus: 0.03 }),
      });
      await slow.exec(["true"]);
      expect((await closeInTime(slow)).incomplete).toBe("time");

      const quick = await open({ workspace: directory });
      await quick.exec(["sh", "-c", "echo all: | tee Makefile d0/Makefile d399/Makefile"]);
      const receipt = await closeInTime(quick);
      // Other work on this machine may leave it too little time as well.
      skip(receipt.incomplete === "time", "other work left too little time to look through 200 000 files");
      expect(receipt).toMatchObject({ incomplete: null, omitted: 0 });
      expect(lines(receipt, directory)).toEqual({
        Makefile: "runs",
        "d0/Makefile": "runs",
        "d399/Makefile": "runs",
      });
    },
  );

  sandboxTest(
    "cannot be made of a container that is gone, and needs none where nothing ran",
    async ({ open }) => {
      const sandbox = await open();
      await sandbox.exec(["true"]);
      await sandbox.engine.removeContainer(sandbox.containerId);
      expect(await sandbox.close()).toEqual({ findings: [], omitted: 0, incomplete: "gone" });
      expect(await (await open()).close()).toEqual({ findings: [], omitted: 0, incomplete: null });
    },
  );
});
