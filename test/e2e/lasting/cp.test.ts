import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { execa } from "execa";
import { describe, expect, it } from "vitest";
import { packTar } from "../../../src/sandbox/docker/calls/tar.js";
import { program } from "../../support/cli.js";
import { type LastingPlace, lastingPlace, upIn } from "../../support/lasting.js";

async function placeWithOne(): Promise<LastingPlace & { inside: (script: string) => Promise<string> }> {
  const place = await lastingPlace();
  await upIn(place, "--name", "one");
  const inside = async (script: string) =>
    (await place.run("exec", "--in", "one", "--", "sh", "-c", script)).stdout;
  return { ...place, inside };
}

async function copied(place: LastingPlace, ...args: string[]): Promise<void> {
  const { exitCode, stdout, stderr } = await place.run("cp", ...args);
  // On a machine that has other work, even a small copy may take long enough to be told of.
  const rest = stderr.replaceAll(/^copied .*\n/gm, "");
  expect({ exitCode, stdout, rest }, args.join(" ")).toEqual({ exitCode: 0, stdout: "", rest: "" });
}

describe("brig cp", () => {
  it("puts files and directories where docker cp puts them, in both directions", async () => {
    const place = await placeWithOne();
    const here = (...names: string[]) => join(place.workspace, ...names);
    await mkdir(here("dir", "below"), { recursive: true });
    await writeFile(here("dir", "file"), "in dir\n");
    await writeFile(here("dir", "below", "run"), "#!/bin/sh\necho ran\n");
    await chmod(here("dir", "below", "run"), 0o755);
    await symlink("file", here("dir", "link"));
    await copied(place, "dir", "one:/tmp/new");
    await copied(place, "dir", "one:/tmp/new");
    await copied(place, "dir/.", "one:/tmp/new/contents");
    await copied(place, "dir/file", "one:/tmp/renamed");
    await copied(place, "dir/file", "one:/tmp");
    expect(
      await place.inside("cd /tmp; find new renamed file | sort; new/below/run; readlink new/link"),
    ).toBe(
      [
        ...["file", "new", "new/below", "new/below/run", "new/contents", "new/contents/below"],
        ...["new/contents/below/run", "new/contents/file", "new/contents/link", "new/dir", "new/dir/below"],
        ...["new/dir/below/run", "new/dir/file", "new/dir/link", "new/file", "new/link", "renamed"],
        ...["ran", "file", ""],
      ].join("\n"),
    );
    await copied(place, "one:/tmp/new/dir", "back");
    await copied(place, "one:/tmp/new/dir", "back");
    await copied(place, "one:/tmp/new/dir/.", "back/contents");
    await copied(place, "one:/tmp/renamed", "dir/taken");
    await copied(place, "one:tmp/renamed", "dir");
    expect(await readFile(here("back", "dir", "file"), "utf8")).toBe("in dir\n");
    expect(await readFile(here("back", "contents", "below", "run"), "utf8")).toContain("ran");
    expect((await stat(here("back", "below", "run"))).mode & 0o777).toBe(0o755);
    expect(await readlink(here("back", "link"))).toBe("file");
    expect(await readFile(here("dir", "taken"), "utf8")).toBe("in dir\n");
    expect(await readFile(here("dir", "renamed"), "utf8")).toBe("in dir\n");
  });

  it("copies large files and archives", async () => {
    const place = await placeWithOne();
    await place.inside("head -c 20000000 /dev/urandom > /tmp/large");
    await copied(place, "one:/tmp/large", "large");
    await copied(place, "large", "one:/tmp/again");
    expect(await place.inside("cmp /tmp/large /tmp/again && stat -c %s /tmp/again")).toBe("20000000\n");
    const archive = await place.start(["cp", "one:/tmp/large", "-"], { keepsOutput: false });
    expect(archive.exitCode).toBe(0);
    const piped = "brig cp one:/etc/hostname - | tar -tf -";
    const brig = `${process.execPath} ${join(import.meta.dirname, "../../../dist/cli/main.js")}`;
    const env = { BRIG_HOME: place.home };
    const { stdout } = await execa("sh", ["-c", piped.replace("brig", brig)], { env });
    expect(stdout).toBe("hostname");
    await mkdir(join(place.workspace, "given"));
    await writeFile(join(place.workspace, "given", "a"), "of the archive");
    await execa("sh", ["-c", `tar -cf - given | ${brig} cp - one:/tmp`], { env, cwd: place.workspace });
    expect(await place.inside("cat /tmp/given/a")).toBe("of the archive");
  });

  it("says how much is copied, and how long the rest takes, once it takes longer than two seconds", async () => {
    const place = await placeWithOne();
    await place.inside("mkdir /tmp/dir && head -c 30000000 /dev/urandom > /tmp/dir/large");
    const env = { ...process.env, BRIG_HOME: place.home };
    const child = spawn(process.execPath, [program, "cp", "one:/tmp/dir", "-"], {
      env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let said = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    // Nobody reads the archive until brig has said so.
    await expect.poll(() => said).toMatch(/^copied [\d.]+ [KM]iB of 29 MiB(?:, .* left)?\n/);
    let bytes = 0;
    child.stdout.on("data", (piece: Buffer) => {
      bytes += piece.length;
    });
    const [exitCode] = await once(child, "close");
    expect([exitCode, bytes > 30_000_000]).toEqual([0, true]);
    const archive = await buffer(packTar([{ path: "of-stdin", mode: 0o644, content: Buffer.from("abc") }]));
    const copying = spawn(process.execPath, [program, "cp", "-", "one:/tmp"], {
      ...{ env, stdio: ["pipe", "ignore", "pipe"] },
    });
    copying.stdin.write(archive.subarray(0, 512));
    let other = "";
    copying.stderr.setEncoding("utf8").on("data", (text: string) => {
      other += text;
    });
    // How much will come is not known here.
    await expect.poll(() => other).toBe("copied 512 B\n");
    copying.stdin.end(archive.subarray(512));
    expect((await once(copying, "close"))[0]).toBe(0);
    expect(await place.inside("cat /tmp/of-stdin")).toBe("abc");
  });

  it("says what is missing or in the way", async () => {
    const place = await placeWithOne();
    await writeFile(join(place.workspace, "file"), "");
    for (const [args, why] of [
      [["one:/no/such", "."], "there is nothing at one:/no/such"],
      [["no-such", "one:/tmp"], "there is nothing at no-such"],
      [["one:/etc", "file"], "file is not a directory"],
      [["one:/etc/hostname", "none/"], "there is nothing at none/"],
      [[".", "one:/etc/hostname"], "/etc/hostname is not a directory"],
      [["file", "one:/no/such/there"], "/no/such"],
      [["file", "other"], "one of the two must be in a sandbox"],
    ] as const) {
      const { exitCode, stderr } = await place.run("cp", ...args);
      expect([exitCode === 0, stderr], args.join(" ")).toEqual([false, expect.stringContaining(why)]);
    }
    expect((await place.run("cp", "none:/x", ".")).exitCode).toBe(2);
  });

  it("says why it failed, however much is still to be sent", async () => {
    const place = await placeWithOne();
    await mkdir(join(place.workspace, "much"));
    for (let i = 0; i < 5; i++)
      await writeFile(join(place.workspace, "much", `file-${i}`), Buffer.alloc(4 * 1024 * 1024));
    for (let i = 0; i < 10; i++) {
      // The top of the archive has the name of a file there, so that nothing of it can be written.
      const { exitCode, stderr } = await place.run("cp", "much", "one:/etc/hostname/x");
      expect([exitCode === 0, stderr]).toEqual([false, expect.stringContaining("/etc/hostname/x")]);
    }
  });

  it("lets go of the sandbox when it is killed while it sends", async () => {
    const place = await lastingPlace();
    await upIn(place, "--name", "one", "--idle", "2s");
    await writeFile(join(place.workspace, "file"), Buffer.alloc(1024 * 1024));
    const archive = await execa("tar", ["-cf", "-", "file"], { cwd: place.workspace, encoding: "buffer" });
    const copying = place.start(["cp", "-", "one:/tmp"], { holdsInputOpen: true });
    // The rest of the file never follows.
    copying.stdin?.write(archive.stdout.subarray(0, 100_000));
    await sleep(1000);
    copying.kill("SIGKILL");
    await copying;
    const state = async () => JSON.parse((await place.run("ps", "--all", "--json")).stdout)[0]?.state;
    await expect.poll(state, { timeout: 20_000, interval: 500 }).toBe("stopped");
  });

  it("writes through no link that a command has made", async () => {
    const place = await placeWithOne();
    const outside = join(place.home, "..", "outside");
    await mkdir(outside);
    await place.inside(
      `mkdir -p /tmp/d/l && echo evil > /tmp/d/l/file; ln -s ${outside} d; ln -s ${outside}/made made`,
    );
    await place.inside("echo evil > /tmp/made; mkdir into; mkdir /tmp/into");
    // The copied directory has the name of a link to elsewhere; so has the copied file, in place of which it is then.
    for (const [source, why] of [
      ["one:/tmp/d/.", "through a link"],
      ["one:/tmp/d", "leads out of the workspace"],
    ] as const) {
      const through = await place.run("cp", source, "d");
      expect([through.exitCode, through.stderr]).toEqual([1, expect.stringContaining(why)]);
    }
    await copied(place, "one:/tmp/made", "made");
    expect(await readFile(join(place.workspace, "made"), "utf8")).toBe("evil\n");
    // A link that an earlier copy has brought.
    await place.inside(`ln -s ${outside} /tmp/into/l`);
    await copied(place, "one:/tmp/into", ".");
    expect(await readlink(join(place.workspace, "into", "l"))).toBe(outside);
    await place.inside("rm /tmp/into/l; mkdir /tmp/into/l; echo evil > /tmp/into/l/file");
    const later = await place.run("cp", "one:/tmp/into", ".");
    expect([later.exitCode, later.stderr]).toEqual([1, expect.stringContaining("through a link")]);
    expect((await execa("ls", ["-A", outside])).stdout).toBe("");
  });
});
