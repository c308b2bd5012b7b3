import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { expect, it } from "vitest";
import { pause } from "../../../src/lib/time/pause.js";
import { firstOutput, type LastingPlace, lastingPlace, upIn } from "../../support/lasting.js";

/** What is over in a moment on one machine takes a minute on another: there are more and more files, until somebody waits for an estimate of them. */
async function withMoreAndMore(
  attempt: (files: number) => Promise<boolean>,
  { from = 4000, to = 256_000, factor = 4 } = {},
): Promise<void> {
  for (let files = from; files <= to; files *= factor) if (await attempt(files)) return;
  throw new Error("however much there was, no estimate was shown");
}

/** Whether an estimate is shown. Of what is drawn over, nothing stays on the screen. */
async function shows(place: LastingPlace, text: RegExp, ...args: string[]): Promise<boolean> {
  const terminal = await place.terminal(args);
  const hasShown = await terminal.showsBeforeItsEnd(text);
  expect((await terminal.end()).exitStatus, args.join(" ")).toBe(0);
  expect(terminal.screen.rows.join("\n")).not.toMatch(/ of \d+ (?:files|MiB)/);
  return hasShown;
}

/** Runs a script in the sandbox "one". */
async function inside(place: LastingPlace, script: string): Promise<void> {
  const { exitCode, stderr } = await place.run("exec", "--in", "one", "--", "sh", "-c", script);
  expect(exitCode, stderr).toBe(0);
}

const writing = (files: number, directory: string) =>
  `mkdir -p ${directory}; cd ${directory}; seq ${files} | split -l 1 -a 5`;

it("fork, apply, undo and stop say how many of the changed files are copied, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  await withMoreAndMore(async (files) => {
    await inside(place, writing(files, "d"));
    const forking = ["fork", "one", "--name", `n${files}`];
    const hasShown = await shows(
      place,
      /copying the workspace of one, \d+ of \d+ files, .* left/,
      ...forking,
    );
    expect((await place.run("rm", `n${files}`)).exitCode).toBe(0);
    return hasShown;
  });
  let applied = 0;
  await withMoreAndMore(async (files) => {
    await inside(place, writing(files, `e${files}`));
    applied = files;
    return await shows(place, /applying the changes, \d+ of \d+ files, .* left/, "apply", "one", `e${files}`);
  });
  expect(await readdir(join(place.workspace, `e${applied}`))).toHaveLength(applied);
  await withMoreAndMore(async (files) => {
    await inside(place, writing(files, "f"));
    await inside(place, "rm -r f");
    return await shows(place, /taking back the changes, \d+ of \d+ files, .* left/, "undo", "one");
  });
  await withMoreAndMore(async (files) => {
    await upIn(place, "--workspace", "overlay", "--name", `s${files}`);
    const begun = ["exec", "--in", `s${files}`, "--detach", "--", "sh", "-c"];
    await place.run(...begun, `${writing(files, "g")}; touch done; sleep 1000`);
    const done = ["exec", "--in", `s${files}`, "--", "test", "-e", "g/done"];
    await expect.poll(() => place.run(...done), { timeout: 300_000 }).toMatchObject({ exitCode: 0 });
    return await shows(place, /ending s\d+, \d+ of \d+ files, .* left/, "stop", `s${files}`);
  });
}, 900_000);

it("apply says how many of the copied files have their names", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  const inPlace = /applying the changes, [1-9]\d* of \d+ files in place/;
  await withMoreAndMore(async (files) => {
    await inside(place, writing(files, `p${files}`));
    return await shows(place, inPlace, "apply", "one", `p${files}`);
  });
}, 900_000);

it("undo says how much is stored of the restore point for which it waits", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  const waiting = /taking back the changes, waiting for a restore point, [1-9]\d* of \d+ files/;
  await withMoreAndMore(async (files) => {
    const script = `${writing(files, `w${files}`)}; echo written`;
    // The command has ended when this is printed, and what it has changed is stored before brig exec ends.
    const running = place.start(["exec", "--in", "one", "--", "sh", "-c", script]);
    expect(await firstOutput(running)).toBe("written");
    const hasShown = await shows(place, waiting, "undo", "one");
    expect(await running).toMatchObject({ exitCode: 0 });
    return hasShown;
  });
}, 900_000);

/** Writes so many pieces of 4 KiB with a hole behind each: such a file takes longer to copy than one of the same size without holes. */
const writingPieces = (pieces: number, file: string) =>
  `perl -e 'open F, ">", "${file}"; for (1..${pieces}) { syswrite F, "x" x 4096; sysseek F, 4096, 1 }'`;

/** Until this is disposed of, every new container in which a tree is changed gets little of the processor, so that a fast machine is slow too. */
async function slowKeepers(place: LastingPlace): Promise<AsyncDisposable> {
  const owner = `label=brig.owner-pid=${await place.ownerPid()}`;
  const keepers = async () => {
    const filters = ["--filter", owner, "--filter", "name=-keeper-"];
    return (await execa("docker", ["ps", "--format", "{{.Names}}", ...filters])).stdout.split("\n");
  };
  const known = new Set(["", ...(await keepers())]);
  let isOver = false;
  const slowing = async () => {
    while (!isOver) {
      for (const name of (await keepers()).filter((one) => !known.has(one))) {
        known.add(name);
        await execa("docker", ["update", "--cpus", "0.1", name]);
      }
      await pause(50);
    }
  };
  const slowed = slowing();
  return {
    async [Symbol.asyncDispose]() {
      isOver = true;
      await slowed;
    },
  };
}

/** At most 2 GB, for a machine that is much faster than any that was seen. */
const pieces = { from: 30_000, to: 480_000, factor: 2 };
const bytes = (what: string) => new RegExp(`${what}, [\\d.]+ [KM]iB of [\\d.]+ MiB, .* left`);

it("fork and apply say how much of one large file is copied, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  await withMoreAndMore(async (count) => {
    await inside(place, writingPieces(count, "big"));
    await using _ = await slowKeepers(place);
    const forking = ["fork", "one", "--name", `n${count}`];
    const hasShown = await shows(place, bytes("copying the workspace of one"), ...forking);
    expect((await place.run("rm", `n${count}`)).exitCode).toBe(0);
    return hasShown;
  }, pieces);
  await withMoreAndMore(async (count) => {
    await inside(place, `rm -f big; ${writingPieces(count, `a${count}`)}`);
    return await shows(place, bytes("applying the changes"), "apply", "one", `a${count}`);
  }, pieces);
}, 900_000);

it("undo and stop say how much of one large file is copied, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  await withMoreAndMore(async (count) => {
    await inside(place, writingPieces(count, "u"));
    await inside(place, "rm u");
    return await shows(place, bytes("taking back the changes"), "undo", "one");
  }, pieces);
  await withMoreAndMore(async (count) => {
    await upIn(place, "--workspace", "overlay", "--name", `s${count}`);
    const begun = ["exec", "--in", `s${count}`, "--detach", "--", "sh", "-c"];
    await place.run(...begun, `${writingPieces(count, "s")}; touch done; sleep 1000`);
    const done = ["exec", "--in", `s${count}`, "--", "test", "-e", "done"];
    await expect.poll(() => place.run(...done), { timeout: 300_000 }).toMatchObject({ exitCode: 0 });
    return await shows(place, bytes(`ending s${count}`), "stop", `s${count}`);
  }, pieces);
}, 900_000);

it("rm says of a sandbox that still runs how many of its changes are stored, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await withMoreAndMore(async (files) => {
    const name = `r${files}`;
    await upIn(place, "--workspace", "overlay", "--name", name);
    await place.run("exec", "--in", name, "--detach", "--", "sh", "-c", writing(files, "d"));
    const done = ["exec", "--in", name, "--", "sh", "-c", `test $(ls d | wc -l) = ${files}`];
    await expect.poll(() => place.run(...done), { timeout: 300_000 }).toMatchObject({ exitCode: 0 });
    return await shows(place, new RegExp(`ending ${name}, \\d+ of \\d+ files, .* left`), "rm", name);
  });
}, 900_000);

it("the ends of brig exec and brig shell say how many of the changes are stored, and how long the rest may take", async () => {
  const place = await lastingPlace();
  const ending = /ending the sandbox, \d+ of \d+ files, .* left/;
  await withMoreAndMore((files) =>
    shows(place, ending, "exec", "--workspace", "overlay", "--", "sh", "-c", writing(files, "d")),
  );
  await withMoreAndMore(async (files) => {
    const shell = await place.terminal(["shell", "--workspace", "overlay"]);
    shell.type(`${writing(files, "d")}; exit\r`);
    const hasShown = await shell.showsBeforeItsEnd(ending);
    expect((await shell.end()).exitStatus).toBe(0);
    const left = shell.screen.history.join("\n");
    expect(left).toMatch(/\d+ changed paths are not applied yet/);
    expect(left).not.toContain("ending the sandbox");
    return hasShown;
  });
}, 900_000);

it("exec --in and shell --in say how many of the changes are stored, and how long the rest may take", async () => {
  const place = await lastingPlace();
  await upIn(place, "--workspace", "overlay", "--name", "one");
  const storing = /storing the changes, \d+ of \d+ files, .* left/;
  await withMoreAndMore((files) =>
    shows(place, storing, "exec", "--in", "one", "--", "sh", "-c", writing(files, `x${files}`)),
  );
  await withMoreAndMore(async (files) => {
    const shell = await place.terminal(["shell", "--in", "one"]);
    shell.type(`${writing(files, `y${files}`)}; exit\r`);
    const hasShown = await shell.showsBeforeItsEnd(storing);
    expect((await shell.end()).exitStatus).toBe(0);
    expect(shell.screen.history.join("\n")).not.toContain("storing the changes");
    return hasShown;
  });
}, 900_000);

it("the end of a session says how many of its changes are stored, and how long the rest may take", async () => {
  const place = await lastingPlace();
  const script = join(place.workspace, "../play.json");
  const flags = ["--script", script, "--workspace", "overlay", "write"];
  const play = async (files: number) => {
    const write = { exec_command: { cmd: writing(files, "d"), yield_time_ms: 30_000 } };
    await writeFile(script, JSON.stringify({ steps: [{ calls: [write] }, { text: "Written." }] }));
  };
  await withMoreAndMore(async (files) => {
    await play(files);
    const run = await place.terminal(["run", ...flags]);
    const hasShown = await run.showsBeforeItsEnd(/ending the session, \d+ of \d+ files, .* left/);
    expect((await run.end()).exitStatus).toBe(0);
    const left = run.screen.history.join("\n");
    expect(left).toMatch(/\d+ changed paths are not applied yet[\s\S]*Written\./);
    expect(left).not.toContain("ending the session");
    return hasShown;
  });
  await withMoreAndMore(async (files) => {
    await play(files);
    const conversation = await place.terminal(flags);
    await conversation.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*● Written\.[\s\S]*\n›\s*\n/);
    conversation.type("\x04");
    const hasShown = await conversation.showsBeforeItsEnd(/closing the sandbox, \d+ of \d+ files, .* left/);
    expect((await conversation.end()).exitStatus).toBe(0);
    return hasShown;
  });
}, 900_000);

it("/apply and /undo say how many of the changed files are copied, and how long the rest may take", async () => {
  const place = await lastingPlace();
  const script = join(place.workspace, "../play.json");
  const shell = (command: string) => ({ shell: { command: ["sh", "-c", command], timeout_ms: 120_000 } });
  /** What a person asks for in a conversation in which the model has run these scripts. */
  const asks = async (command: string, scripts: string[], estimate: RegExp, done: RegExp) => {
    const calls = scripts.map((one) => ({ calls: [shell(one)] }));
    await writeFile(script, JSON.stringify({ steps: [...calls, { text: "Written." }] }));
    const conversation = await place.terminal([
      ...["-a", "never", "--script", script],
      ...["--workspace", "overlay", "write"],
    ]);
    await conversation.waitForScreen(/^(?![\s\S]*◦ )[\s\S]*● Written\.[\s\S]*\n›\s*\n/);
    conversation.type(`${command}\r`);
    const hasShown = await conversation.showsBeforeItsEnd(estimate, done);
    await conversation.waitForScreen(done);
    await conversation.waitForScreen(/^(?![\s\S]*(?:◦ | of \d+ files))/);
    conversation.type("\x04");
    expect((await conversation.end()).exitStatus).toBe(0);
    return hasShown;
  };
  await withMoreAndMore((files) =>
    asks(
      "/apply",
      [writing(files, `d${files}`)],
      /◦ applying the changes \d+ s · \d+ of \d+ files, .* left · esc interrupts/,
      new RegExp(`and ${files + 1 - 100} more`),
    ),
  );
  await withMoreAndMore((files) =>
    asks(
      "/undo",
      [writing(files, "f"), "rm -r f"],
      /◦ taking back the changes \d+ s · \d+ of \d+ files, .* left · esc interrupts/,
      new RegExp(`and ${files + 1 - 100} more`),
    ),
  );
}, 900_000);
