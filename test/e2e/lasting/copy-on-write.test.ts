import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { endProcess, type LastingPlace, lastingPlace, upIn } from "../../support/lasting.js";

const patience = { timeout: 30_000, interval: 100 };

/** A place with a sandbox called `web`, whose workspace is copy-on-write and has the file `a.txt`. */
async function copiedPlace(): Promise<
  LastingPlace & { inside(script: string, name?: string): Promise<string> }
> {
  const place = await lastingPlace();
  await writeFile(join(place.workspace, "a.txt"), "one\n");
  await upIn(place, "--name", "web", "--workspace", "overlay");
  return {
    ...place,
    async inside(script, name = "web") {
      const { exitCode, stdout, stderr } = await place.run("exec", "--in", name, "--", "sh", "-c", script);
      expect([exitCode, stderr]).toEqual([0, ""]);
      return stdout;
    },
  };
}

const json = ({ stdout }: { stdout: string }) => JSON.parse(stdout);

describe("a lasting sandbox with a copy-on-write workspace", () => {
  it("shows its changes, and brings them to the host", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt; mkdir dir; echo new > dir/b.txt; printf 'x\\377' > binary");
    const hostFile = () => readFile(join(place.workspace, "a.txt"), "utf8");
    expect(await hostFile()).toBe("one\n");
    const shown = await place.run("diff", "web");
    expect([shown.exitCode, shown.stderr]).toEqual([0, ""]);
    expect(shown.stdout).toContain("+two\n");
    const named = await place.run("diff", "web", "--name-only", "dir");
    expect(named.stdout).toBe("added    dir\nadded    dir/b.txt\n");
    const listed = json(await place.run("diff", "--in", "web", "--json"));
    expect(listed).toMatchObject({ sandbox: "web", workspace: place.workspace, count: 4 });
    expect(listed.changes.map(({ path }: { path: string }) => path)).toEqual([
      "a.txt",
      "binary",
      "dir",
      "dir/b.txt",
    ]);
    const dry = json(await place.run("apply", "web", "--dry-run", "--json", "a.txt"));
    expect(dry).toMatchObject({ sandbox: "web", dryRun: true, applied: ["a.txt"], conflicts: [] });
    expect(await hostFile()).toBe("one\n");
    const applied = await place.run("apply", "web", "dir");
    expect([applied.exitCode, applied.stdout]).toEqual([0, "dir\ndir/b.txt\n"]);
    expect(await readFile(join(place.workspace, "dir/b.txt"), "utf8")).toBe("new\n");
    await writeFile(join(place.workspace, "a.txt"), "of the host\n");
    const conflict = await place.run("apply", "web");
    expect([conflict.exitCode, conflict.stderr]).toEqual([1, expect.stringContaining("a.txt")]);
    expect([await hostFile(), existsSync(join(place.workspace, "binary"))]).toEqual(["of the host\n", false]);
    // The sandbox goes on, and has its own version.
    expect(await place.inside("cat a.txt")).toBe("one\ntwo\n");
  });

  it("takes back what each of its commands has changed, the last one first", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt");
    await place.inside("cat a.txt");
    await place.inside("echo three >> a.txt; touch new");
    const first = await place.run("undo", "web");
    expect([first.exitCode, first.stdout]).toEqual([0, "put back   a.txt\nremoved    new\n"]);
    expect(await place.inside("cat a.txt; ls")).toBe("one\ntwo\na.txt\n");
    expect(json(await place.run("undo", "web", "--json"))).toMatchObject({
      undone: { restores: 0, point: { count: 1, changes: [{ path: "a.txt" }] } },
    });
    expect(await place.inside("cat a.txt")).toBe("one\n");
    const none = await place.run("undo", "web");
    expect([none.exitCode, none.stdout, none.stderr]).toEqual([0, "", "brig: there is nothing to undo\n"]);
    // What a command that nobody waited for has changed counts, too.
    await place.run("exec", "--in", "web", "-d", "--", "sh", "-c", "echo later > a.txt");
    await expect.poll(() => place.inside("cat a.txt"), patience).toBe("later\n");
    await place.run("undo", "web");
    expect(await place.inside("cat a.txt")).toBe("one\n");
  });

  it("is forked with its files and without its processes, and each goes its own way", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt; echo outside > /tmp/file");
    await place.run("exec", "--in", "web", "-d", "--", "sleep", "4321");
    const forked = await place.run("fork", "web", "--name", "other");
    expect([forked.exitCode, forked.stdout, forked.stderr]).toEqual([0, "other\n", ""]);
    const listed = json(await place.run("ps", "--json"));
    expect(listed.map(({ name }: { name: string }) => name).sort()).toEqual(["other", "web"]);
    expect(await place.inside("cat a.txt; cat /tmp/file 2>/dev/null; pgrep sleep || true", "other")).toBe(
      "one\ntwo\n",
    );
    await place.inside("echo of the fork >> a.txt", "other");
    await place.inside("echo of the parent >> a.txt");
    expect(await place.inside("cat a.txt", "other")).toBe("one\ntwo\nof the fork\n");
    expect((await place.run("rm", "web")).exitCode).toBe(0);
    expect((await place.run("undo", "other")).stdout).toBe("put back   a.txt\n");
    expect((await place.run("diff", "other")).stdout).toContain("+two\n");
    const again = json(await place.run("fork", "other", "--json"));
    expect(again).toEqual({ name: expect.stringMatching(/^[a-z]+-[a-z]+$/), id: expect.any(String) });
    const taken = await place.run("fork", "other", "--name", again.name);
    expect([taken.exitCode, taken.stderr]).toEqual([2, expect.stringContaining("already")]);
    const bad = await place.run("fork", "other", "--name", "Not A Name");
    expect(bad.exitCode).toBe(2);
    expect((await place.run("apply", "other")).exitCode).toBe(0);
    expect(await readFile(join(place.workspace, "a.txt"), "utf8")).toBe("one\ntwo\n");
  });

  it("is forked into one that outlives its owner as well", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt");
    await place.run("fork", "web", "--name", "other");
    await place.inside("echo three >> a.txt", "other");
    const before = await place.ownerPid();
    await endProcess(before ?? 0, "SIGKILL");
    await expect.poll(() => place.ownerPid(), patience).not.toBeNull();
    expect(await place.inside("cat a.txt", "other")).toBe("one\ntwo\nthree\n");
    expect((await place.run("diff", "other")).stdout).toContain("+two\n+three\n");
    expect((await place.run("undo", "other")).stdout).toBe("put back   a.txt\n");
    expect(await place.inside("cat a.txt", "other")).toBe("one\ntwo\n");
    expect((await place.run("rm", "web", "other")).exitCode).toBe(0);
  });

  it("leaves its changes when it is stopped, which go by its name until it is removed", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt");
    await place.run("stop", "web");
    expect((await place.run("diff", "web")).stdout).toContain("+two\n");
    const applied = await place.run("apply", "web");
    expect([applied.exitCode, applied.stdout]).toEqual([0, "a.txt\n"]);
    expect(await readFile(join(place.workspace, "a.txt"), "utf8")).toBe("one\ntwo\n");
    for (const command of ["undo", "fork"]) {
      const { exitCode, stderr } = await place.run(command, "web");
      expect([exitCode, stderr], command).toEqual([125, expect.stringContaining("it was stopped")]);
    }
    await place.run("rm", "web");
    await upIn(place, "--name", "unchanged", "--workspace", "overlay");
    await place.run("stop", "unchanged");
    const none = await place.run("diff", "unchanged");
    expect([none.exitCode, none.stderr]).toEqual([125, expect.stringContaining("it was stopped")]);
  });

  it("is not mistaken for a path, nor a workspace of another kind for a copy", async () => {
    const place = await copiedPlace();
    await place.inside("echo two >> a.txt");
    await mkdir(join(place.workspace, "web"));
    for (const command of ["diff", "apply"]) {
      const { exitCode, stderr } = await place.run(command, "web");
      expect(exitCode, command).toBe(2);
      expect(stderr).toContain('"web" is the name of a sandbox, and of a file here');
      expect(stderr).toContain("--in web means the sandbox, and ./web the file");
    }
    expect((await place.run("diff", "--in", "web", "--name-only")).stdout).toBe("modified a.txt\n");
    const unknown = await place.run("diff", "--in", "nope");
    expect([unknown.exitCode, unknown.stderr]).toEqual([2, expect.stringContaining('called "nope"')]);
    const both = await place.run("diff", "--in", "web", "--last");
    expect([both.exitCode, both.stderr]).toEqual([2, expect.stringContaining("--in cannot be combined")]);
    await upIn(place, "--name", "plain");
    for (const call of [
      ["diff", "plain"],
      ["apply", "plain"],
      ["undo", "plain"],
      ["fork", "plain"],
    ]) {
      const { exitCode, stderr } = await place.run(...call);
      expect([exitCode, stderr], call.join(" ")).toEqual([2, expect.stringContaining("--workspace overlay")]);
    }
  });

  it("keeps a state after each call of a model, which a person takes back with /undo", async () => {
    const place = await copiedPlace();
    const script = join(place.home, "..", "play.yaml");
    const calls = ["echo two >> a.txt", "touch new"].map((command) => ({
      calls: [{ shell: { command: ["sh", "-c", command] } }],
    }));
    await writeFile(script, JSON.stringify({ steps: [...calls, { text: "done" }] }));
    const terminal = await place.terminal(["--in", "web", "--script", script]);
    await terminal.waitForScreen(/^›\s*$/m);
    terminal.type("begin\r");
    await terminal.waitForScreen(/● done[\s\S]*^›\s*$/m);
    terminal.type("/undo\r");
    await terminal.waitForScreen(/the last call that changed files is undone[\s\S]*removed new/);
    terminal.type("/diff\r");
    await terminal.waitForScreen(/changes that your files do not have[\s\S]*\+two/);
    terminal.type("/apply\r");
    await terminal.waitForScreen(/applied to your files: 1 path/);
    terminal.type("\x04");
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(await place.inside("cat a.txt; ls")).toBe("one\ntwo\na.txt\n");
    expect(await readFile(join(place.workspace, "a.txt"), "utf8")).toBe("one\ntwo\n");
  });
});
