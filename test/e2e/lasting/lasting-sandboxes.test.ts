import { chmod, mkdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { describe, expect, it, onTestFinished } from "vitest";
import { containersOf } from "../../support/cli.js";
import { testEngine } from "../../support/engine.js";
import { endProcess, firstOutput, lastingPlace, upIn } from "../../support/lasting.js";
import { SmallDisk, whyNoSmallDisk } from "../../support/small-disk.js";

describe("a sandbox of brig up", () => {
  it("takes commands until brig stop, has its name until brig rm, and leaves nothing", async () => {
    const place = await lastingPlace();
    const started = await place.run("up", "--name", "one");
    expect(started).toEqual({ exitCode: 0, stdout: "one\n", stderr: "" });
    const owner = (await place.ownerPid()) ?? 0;
    const told = await place.run("exec", "--in", "one", "--", "sh", "-c", "pwd; echo to >&2; exit 3");
    expect(told).toEqual({ exitCode: 3, stdout: `${place.workspace}\n`, stderr: "to\n" });
    await place.run("exec", "--in", "one", "--", "sh", "-c", "echo kept > /tmp/file");
    expect((await place.run("exec", "--in", "one", "--", "cat", "/tmp/file")).stdout).toBe("kept\n");
    const [listed] = JSON.parse((await place.run("ps", "--json")).stdout);
    expect(listed).toMatchObject({ name: "one", state: "running", mode: "workspace-write", confirmed: true });
    expect(Object.keys(listed)).toEqual([
      ...["name", "id", "state", "mode", "network", "image", "workspace", "createdAt", "confirmed"],
    ]);
    expect((await place.run("exec", "--in", listed.id.slice(0, 6), "--", "true")).exitCode).toBe(0);
    expect((await place.run("gc", "--kept")).exitCode).toBe(0);
    expect(await containersOf(owner)).toHaveLength(1);
    expect((await place.run("stop", "one")).exitCode).toBe(0);
    expect(await containersOf(owner)).toEqual([]);
    expect(JSON.parse((await place.run("ps", "--json")).stdout)).toEqual([]);
    const all = JSON.parse((await place.run("ps", "--all", "--json")).stdout);
    expect(all).toMatchObject([{ name: "one", id: listed.id, state: "stopped" }]);
    const late = await place.run("exec", "--in", "one", "--", "true");
    expect([late.exitCode, late.stderr]).toEqual([125, expect.stringContaining("it was stopped")]);
    expect((await place.run("up", "--name", "one")).exitCode).toBe(2);
    expect((await place.run("rm", "one")).exitCode).toBe(0);
    expect((await place.run("rm", "one")).exitCode).toBe(2);
    expect((await place.run("stop", "one")).exitCode).toBe(2);
    expect((await place.run("exec", "--in", "one", "--", "true")).exitCode).toBe(125);
    expect(JSON.parse((await place.run("ps", "--all", "--json")).stdout)).toEqual([]);
  });

  it("ends with brig rm while a command runs in it, which fails then", async () => {
    const place = await lastingPlace();
    const name = await upIn(place);
    expect(name).toMatch(/^[a-z]+-[a-z]+$/);
    const running = place.run("exec", "--in", name, "--", "sh", "-c", "echo begun; exec sleep 1000");
    await firstOutput(running);
    expect((await place.run("rm", name)).exitCode).toBe(0);
    const { exitCode, stderr } = await running;
    expect([exitCode, stderr]).toEqual([
      125,
      expect.stringMatching(/^brig: the sandbox (?:was closed|has ended)/),
    ]);
  });

  it("gives a command its input, directory, variables and time", async () => {
    const place = await lastingPlace();
    await mkdir(join(place.workspace, "below"));
    await writeFile(join(place.workspace, "variables"), "FROM_FILE=file value\n");
    await upIn(place, "--name", "one", "-e", "OF_ALL=all");
    const input = "x".repeat(3_000_000);
    const counted = await place.start(["exec", "--in", "one", "-i", "--", "wc", "-c"], { input });
    expect(counted.stdout.trim()).toBe("3000000");
    // A command that reads nothing does not keep its client from ending.
    expect(await place.start(["exec", "--in", "one", "-i", "--", "true"], { input })).toMatchObject({
      exitCode: 0,
    });
    const flags = ["-C", "below", "-e", "OWN=own", "--env-file", "variables"];
    const words = await place.run(
      "exec",
      "--in",
      "one",
      ...flags,
      "--",
      "sh",
      "-c",
      "pwd; echo $OF_ALL $OWN $FROM_FILE",
    );
    expect(words.stdout).toBe(`${place.workspace}/below\nall own file value\n`);
    const late = await place.run("exec", "--in", "one", "--timeout", "300ms", "--", "sleep", "100");
    expect([late.exitCode, late.stderr]).toEqual([124, expect.stringContaining("the limit of --timeout")]);
    expect((await place.run("exec", "--in", "one", "--", "no-such-program")).exitCode).toBe(127);
    const wrong = await place.run("exec", "--in", "one", "-C", "/no/such", "--", "true");
    expect([wrong.exitCode, wrong.stderr]).toEqual([125, expect.stringContaining("/no/such")]);
    const json = await place.run(
      "exec",
      "--in",
      "one",
      "--json",
      "--",
      "sh",
      "-c",
      "echo out; echo err >&2; exit 4",
    );
    expect(json.exitCode).toBe(4);
    expect(JSON.parse(json.stdout)).toMatchObject({
      exitCode: 4,
      stdout: "out\n",
      stderr: "err\n",
      receipt: null,
    });
    const refused = await place.run("exec", "--in", "one", "-s", "read-only", "--", "true");
    expect([refused.exitCode, refused.stderr]).toEqual([125, expect.stringContaining("--in and --sandbox")]);
  });

  it("gets all output of a command, however slowly that is read, and the command waits meanwhile", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const program = place.start(
      ["exec", "--in", "one", "--", "sh", "-c", "head -c 30000000 /dev/zero; echo >&2 done"],
      {
        keepsOutput: false,
      },
    );
    program.stdout.pause();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    let bytes = 0;
    for await (const chunk of program.stdout) bytes += (chunk as Buffer).length;
    expect([bytes, (await program).stderr]).toEqual([30_000_000, "done\n"]);
  });

  it("keeps its files when a client is killed, whose command ends", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const script = "trap '' TERM HUP INT; echo $$; while :; do sleep 0.1; done";
    const client = place.start(["exec", "--in", "one", "-i", "--", "sh", "-c", script], {
      holdsInputOpen: true,
    });
    const pid = await firstOutput(client);
    const isRunning = async () =>
      (await place.run("exec", "--in", "one", "--", "test", "-e", `/proc/${pid}`)).exitCode;
    await place.run("exec", "--in", "one", "--", "touch", "/tmp/begun");
    expect(await isRunning()).toBe(0);
    client.kill("SIGKILL");
    await client;
    await expect.poll(isRunning, { timeout: 10_000, interval: 300 }).toBe(1);
    expect((await place.run("exec", "--in", "one", "--", "ls", "/tmp")).stdout).toContain("begun");
  });
});

describe("the process that keeps the sandboxes", () => {
  it("is one, although two begin at once, and one of two gets a name that both want", async () => {
    const place = await lastingPlace();
    const both = await Promise.all([0, 1].map(() => place.start(["up", "--name", "same"])));
    expect(both.map(({ exitCode }) => exitCode).toSorted()).toEqual([0, 2]);
    expect(both.map(({ stderr }) => stderr).join("")).toContain("there is a sandbox called same already");
    const others = await Promise.all(["a", "b"].map((name) => place.start(["up", "--name", name])));
    expect(others.map(({ exitCode }) => exitCode)).toEqual([0, 0]);
    const records = ["same", "a", "b"].map((name) =>
      readFile(join(place.home, "lasting", `${name}.json`), "utf8"),
    );
    const owners = (await Promise.all(records)).map((record) => JSON.parse(record).owner.pid);
    expect(new Set(owners)).toEqual(new Set([await place.ownerPid()]));
  });

  it("refuses names that are none, and those do nothing", async () => {
    const place = await lastingPlace();
    for (const name of ["../x", "..", "", "A", "-x", "a/b", "a b", ".a", "x".repeat(101)]) {
      const { exitCode, stderr } = await place.run("up", `--name=${name}`);
      expect([exitCode, stderr], name).toEqual([2, expect.stringContaining("cannot be the name")]);
    }
    expect(await place.ownerPid()).toBeNull();
    expect((await place.run("rm", "../../etc/passwd")).exitCode).toBe(2);
  });

  it("can be reached by its user alone", async () => {
    const place = await lastingPlace();
    await upIn(place);
    const socket = join(place.home, "service.sock");
    expect((await stat(socket)).mode & 0o777).toBe(0o600);
    if (process.getuid?.() !== 0) return;
    // Another user, for whom the way to the socket is open.
    await chmod(place.home, 0o755);
    await chmod(join(place.home, ".."), 0o755);
    const program = `require("node:net").connect(${JSON.stringify(socket)}).on("connect", () => console.log("connected")).on("error", (e) => console.log(e.code))`;
    const tried = await execa(process.execPath, ["-e", program], {
      uid: 65_534,
      gid: 65_534,
      cwd: "/",
      reject: false,
    });
    expect(tried.stdout).toBe("EACCES");
  });

  it("cannot be reached from a sandbox in whose workspace $BRIG_HOME is", async () => {
    const place = await lastingPlace({ homeName: join("work", "home") });
    await mkdir(place.home, { mode: 0o700 });
    await mkdir(join(place.workspace, "..", "codex"));
    await upIn(place, "--name", "one");
    const socket = join(place.home, "service.sock");
    const program = `import socket; socket.socket(socket.AF_UNIX).connect(${JSON.stringify(socket)})`;
    const tried = await place.run("exec", "--in", "one", "--", "python3", "-c", program);
    expect([tried.exitCode, tried.stderr]).toEqual([1, expect.stringMatching(/Error/)]);
    expect(await execa("python3", ["-c", program])).toMatchObject({ exitCode: 0 });
  });

  it.each([
    ["a link", async (socket: string) => await symlink("/run/docker.sock", socket), "is not a socket"],
    ["a file", async (socket: string) => await writeFile(socket, ""), "is not a socket"],
  ])(
    "does not begin where %s is in the place of its socket, and nobody connects to that",
    async (_what, make, why) => {
      const place = await lastingPlace();
      await mkdir(place.home, { mode: 0o700 });
      await make(join(place.home, "service.sock"));
      const { exitCode, stderr } = await place.run("up", "--name", "one");
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(why)]);
    },
  );

  it("does not begin in a directory that others may write to", async () => {
    const place = await lastingPlace();
    await mkdir(place.home);
    await chmod(place.home, 0o777);
    const { exitCode, stderr } = await place.run("up");
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining("other users may write to")]);
    expect(await place.ownerPid()).toBeNull();
  });

  it("is found where $BRIG_HOME is too long for a socket, and ends with what it keeps on SIGTERM", async () => {
    const place = await lastingPlace({ homeName: "long-".repeat(30) });
    await upIn(place, "--name", "one");
    expect((await place.run("exec", "--in", "one", "--", "echo", "found")).stdout).toBe("found\n");
    const owner = (await place.ownerPid()) ?? 0;
    await endProcess(owner, "SIGTERM");
    expect(await containersOf(owner)).toEqual([]);
    const late = await place.run("exec", "--in", "one", "--", "true");
    expect([late.exitCode, late.stderr]).toEqual([125, expect.stringContaining("was asked to end")]);
  });

  it("leaves a clear word when it is killed with the container, and the next one takes new sandboxes", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one");
    const owner = (await place.ownerPid()) ?? 0;
    const running = place.run("exec", "--in", "one", "--", "sh", "-c", "echo begun; sleep 1000");
    await firstOutput(running);
    const [container] = await containersOf(owner);
    // It does not notice that the container ends.
    process.kill(owner, "SIGSTOP");
    await (await testEngine()).removeContainer(`${container}`);
    await endProcess(owner, "SIGKILL");
    // Who waits for the next owner is told.
    const told = expect.stringMatching(
      /^(?:brig: the process that kept the sandbox one was killed or has crashed.*\n)?$/,
    );
    expect(await place.run("up", "--name", "two")).toEqual({ exitCode: 0, stdout: "two\n", stderr: told });
    expect(await place.run("ps", "--json")).toMatchObject({ exitCode: 0, stderr: "" });
    const late = await place.run("exec", "--in", "one", "--", "true");
    for (const { exitCode, stderr } of [late, await running])
      expect([exitCode, stderr]).toEqual([125, expect.stringContaining("was killed or has crashed")]);
    expect(await place.ownerPid()).not.toBe(owner);
    expect((await place.run("exec", "--in", "two", "--", "true")).exitCode).toBe(0);
    expect((await place.run("rm", "one", "two")).exitCode).toBe(0);
  });

  it.skipIf(whyNoSmallDisk !== null)(
    "says that its disk is full, and keeps no sandbox that it cannot record",
    async () => {
      const disk = SmallDisk.mount(1);
      onTestFinished(() => disk[Symbol.asyncDispose]());
      const place = await lastingPlace({ homeName: disk.path });
      const full = [125, expect.stringContaining("no space left on the device")];
      await disk.fill();
      const first = await place.start(["up", "--name", "one"]);
      expect([first.exitCode, first.stderr]).toEqual(full);
      await disk.makeRoom();
      await upIn(place, "--name", "two");
      const owner = (await place.ownerPid()) ?? 0;
      await disk.fill();
      const third = await place.start(["up", "--name", "three"]);
      expect([third.exitCode, third.stderr]).toEqual(full);
      expect(await containersOf(owner)).toHaveLength(1);
      expect((await place.run("exec", "--in", "two", "--", "echo", "works")).stdout).toBe("works\n");
      await disk.makeRoom();
      expect((await place.run("rm", "two")).exitCode).toBe(0);
    },
  );
});
