import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { commands } from "../../../../src/cli/command-list.js";
import { verdict, withoutDetails } from "../../../../src/cli/commands/doctor.js";
import { runProgram } from "../../../../src/cli/program.js";
import { check } from "../../../../src/sandbox/docker/diagnosis/check.js";
import { testContext } from "../../../support/cli-context.js";
import { dockerDesktop } from "../../../support/docker-desktop.js";

describe("the known vulnerabilities without -v", () => {
  const fine = check({ id: "cgroups", title: "cgroups", found: "v2" });
  const fixed = check({ id: "CVE-1", title: "CVE-1", found: "fixed" });
  const open = check(
    { id: "CVE-2", title: "CVE-2", found: "not fixed" },
    { status: "warn", advice: "upgrade" },
  );

  it("are one line that names those that may concern the engine", () => {
    expect(withoutDetails([fixed, fine, open])).toEqual([
      fine,
      expect.objectContaining({
        status: "warn",
        found: "1 of 2 may affect this engine: CVE-2",
        advice: expect.stringContaining("brig doctor -v"),
      }),
    ]);
  });

  it("are one good line where none does", () => {
    expect(withoutDetails([fixed]).map(({ status, found }) => [status, found])).toEqual([
      ["ok", "none of 1 affects this engine"],
    ]);
  });
});

describe("the verdict", () => {
  const of = (title: string, status: "ok" | "warn" | "fail") => ({
    ...{ id: title, title, status, found: "" },
    advice: status === "ok" ? null : "do something",
  });

  it.each([
    ["ready: this machine can run brig", [of("a", "ok")]],
    [
      "ready: this machine can run brig; to consider: b, c",
      [of("a", "ok"), of("b", "warn"), of("c", "warn")],
    ],
    ["1 thing keeps brig from working: b", [of("a", "ok"), of("b", "fail")]],
    [
      "2 things keep brig from working: a, c; to consider: b",
      [of("a", "fail"), of("b", "warn"), of("c", "fail")],
    ],
  ])("is %s", (sentence, checks) => {
    expect(verdict(checks)).toBe(sentence);
  });
});

function temporaryHome(): string {
  const home = mkdtempSync(join(tmpdir(), "brig-doctor-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return home;
}

async function doctor(args: string[], variables: Record<string, string>) {
  const context = testContext({ variables });
  const failure = await runProgram(["doctor", ...args], { context, commands });
  return { status: failure ?? context.exitStatus, ...context.written() };
}

describe("brig doctor", () => {
  it("says its verdict first and last, with the details between", async () => {
    const home = temporaryHome();
    await using _desktop = await dockerDesktop(home);
    const { status, stdout, stderr } = await doctor([], { HOME: home });
    expect([status, stderr]).toEqual([0, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toMatch(/^ready: this machine can run brig; to consider: .*base image/);
    expect(lines.at(-1)).toBe(lines[0]);
    expect(lines[1]).toBe("");
    expect(lines.at(-2)).toBe("");
    expect(stdout).toMatch(/^ok +control groups +version 2, driver cgroupfs$/m);
  });

  it("has the same verdict as JSON", async () => {
    const home = temporaryHome();
    await using _desktop = await dockerDesktop(home);
    const { status, stdout } = await doctor(["--json"], { HOME: home });
    const lines = (await doctor([], { HOME: home })).stdout.split("\n");
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      ready: true,
      verdict: lines[0],
      checks: expect.arrayContaining([expect.objectContaining({ id: "cgroups", status: "ok" })]),
    });
  });

  it("says that no engine answers as its verdict, with what was tried and what to do", async () => {
    const home = temporaryHome();
    const variables = { HOME: home, DOCKER_HOST: `unix://${home}/absent.sock` };
    const { status, stdout, stderr } = await doctor([], variables);
    expect([status, stderr]).toEqual([125, ""]);
    const lines = stdout.trimEnd().split("\n");
    expect(lines[0]).toBe("1 thing keeps brig from working: container engine");
    expect(lines.at(-1)).toBe(lines[0]);
    expect(stdout).toMatch(
      /^fail +container engine +.*absent\.sock.* does not answer: no such socket\n +→ \w/m,
    );
    const asJson = await doctor(["--json"], variables);
    expect(asJson.status).toBe(125);
    expect(JSON.parse(asJson.stdout)).toMatchObject({ ready: false, verdict: lines[0] });
  });

  it("knows Docker Desktop, whose disk and root are those of a virtual machine", async () => {
    const home = temporaryHome();
    await using desktop = await dockerDesktop(home);
    const { stdout } = await doctor(["--json"], { HOME: home });
    const found = new Map(
      (JSON.parse(stdout).checks as { id: string }[]).map(({ id, ...rest }) => [id, rest]),
    );
    expect(found.get("engine")).toMatchObject({
      found: `docker 26.1.4 of Docker Desktop on arm64, Linux 6.6.31-linuxkit, at unix://${desktop.socketPath}`,
    });
    expect(found.get("disk")).toMatchObject({ status: "ok", found: "not visible from here" });
    expect(found.get("user-namespaces")).toMatchObject({
      advice: expect.stringContaining("virtual machine"),
    });
    expect(found.get("seccomp")).toMatchObject({ status: "ok", found: "profile=unconfined" });
  });
});
