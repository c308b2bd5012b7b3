import { createHash } from "node:crypto";
import { chmod, chown, lstat, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, vi } from "vitest";
import type { Receipt } from "../../../src/sandbox/receipt/receipt.js";
import { promised } from "../../guarantees.js";
import { engineDefaultPolicy } from "../../support/policies.js";
import { sandboxTest, temporaryDirectory } from "../../support/sandbox.js";

afterEach(() => vi.restoreAllMocks());

/** `path: reasons` of what lies below a directory. */
function lines({ findings }: Receipt, directory: string): Record<string, string> {
  return Object.fromEntries(
    findings.map(({ path, reasons }) => [path.slice(directory.length + 1), reasons.join(" ")]),
  );
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
           git init -q nested; cp /bin/true nested/.git/hooks/post-commit; ln -s /etc/passwd .bashrc
           mkdir -p b.git/objects b.git/refs b.git/hooks; echo x >b.git/HEAD; echo x >b.git/hooks/pre-push; mkfifo conftest.py`,
        ]);
        const receipt = await sandbox.close();
        expect(receipt).toMatchObject({ omitted: 0, incomplete: null });
        expect(lines(receipt, directory)).toEqual({
          ".bashrc": "runs",
          ".github/workflows/new.yml": "runs",
          "a/.envrc": "runs",
          "a/.vscode/tasks.json": "runs",
          "a/evil.pth": "runs",
          "b.git": "repository",
          "b.git/hooks/pre-push": "runs",
          "nested/.git": "repository",
          "nested/.git/config": "runs",
          "nested/.git/hooks/post-commit": "runs",
          "package.json": "runs",
        });
        const sha256 = createHash("sha256").update('{"scripts":{}}\n').digest("hex");
        expect(receipt.findings.find(({ path }) => path.endsWith("package.json"))).toMatchObject({
          sha256,
          uid,
          sizeBytes: 15,
          isNeutralised: false,
        });
        expect(receipt.findings.find(({ path }) => path.endsWith(".bashrc"))?.sha256).toBeNull();
      },
    );

  sandboxTest(
    "with all that an engine gives takes setuid bits, capabilities and devices away and says so",
    async ({ open, directory }) => {
      await using policies = await temporaryDirectory();
      const policyFile = await engineDefaultPolicy(policies.path);
      vi.spyOn(process, "getuid").mockReturnValue(1234);
      const sandbox = await open({ workspace: directory, policyFile });
      const { exitCode, output } = await sandbox.exec([
        "sh",
        "-c",
        `cp /bin/true suid && chmod 6755 suid && cp /bin/true capable && chown 1234 capable suid && chmod 6755 suid && mknod device c 1 3 &&
         python3 -c 'import os; os.setxattr("capable", "security.capability", bytes.fromhex("0100000200200000000000000000000000000000"))'`,
      ]);
      expect(output).toBe("");
      expect(exitCode).toBe(0);
      const receipt = await sandbox.close();
      expect(lines(receipt, directory)).toEqual({
        suid: "setuid",
        capable: "capabilities",
        device: "device owner",
      });
      expect(receipt.findings.every(({ isNeutralised }) => isNeutralised)).toBe(true);
      expect((await lstat(join(directory, "suid"))).mode & 0o7777).toBe(0o755);
      await expect(lstat(join(directory, "device"))).rejects.toMatchObject({ code: "ENOENT" });
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
    const { default: fs } = await import("node:fs");
    const sha256 = createHash("sha256")
      .update(fs.readFileSync(join(directory, "Makefile")))
      .digest("hex");
    expect(findings.map((finding) => finding.sha256)).toEqual([sha256]);
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
