import { expect } from "vitest";
import { forEachHostUser } from "../../support/each-host-user.js";
import { program } from "../../support/sandbox.js";

forEachHostUser((test) => {
  test("without a network programs reach each other by name, and nothing else", async ({ open }) => {
    const sandbox = await open();
    const { stdout, output } = await sandbox.exec(program("loopback.py"));
    expect(stdout.split("\n"), output).toEqual([
      "lo",
      "localhost heard",
      "brig heard",
      "192.0.2.1 ENETUNREACH",
      "2001:db8::1 ENETUNREACH",
      "",
    ]);
  });

  test("what names mean cannot be changed inside", async ({ open }) => {
    const sandbox = await open({ mode: "danger-full-access", network: "none" });
    const write = (file: string) => sandbox.exec(["sh", "-c", `echo 192.0.2.1 localhost >> ${file}`]);
    const { exitCode, stderr } = await write("/etc/hosts");
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("Read-only file system")]);
    // It is this file that is held: root may write its neighbours here.
    expect(await write("/etc/hosts.of-nobody")).toMatchObject({ exitCode: 0 });
  });
});
