import { randomBytes } from "node:crypto";
import { chmod, mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execa } from "execa";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { Sandbox } from "../../src/sandbox/sandbox.js";
import { brig } from "../support/cli.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { type FaultyEngine, faultyEngine } from "../support/faulty-engine.js";
import { recordingEngine } from "../support/recording-engine.js";
import { temporaryDirectory } from "../support/sandbox.js";
import { Terminal } from "../support/terminal.js";

let engine: Engine;
let watched: FaultyEngine;
let base: string;
let folder: string;
let salt: string;

beforeAll(async () => {
  engine = await testEngine();
  ({ base } = await ensureImages(engine, { names: ["base"] }));
});
beforeEach(async () => {
  salt = randomBytes(8).toString("hex");
  const directory = await temporaryDirectory();
  watched = await faultyEngine();
  onTestFinished(async () => {
    await watched[Symbol.asyncDispose]();
    await directory[Symbol.asyncDispose]();
  });
  folder = join(directory.path, "app");
  await mkdir(folder);
  await mkdir(join(directory.path, "home"));
});
afterEach(async () => {
  for (const { tags } of await engine.listImages([`brig.test-image=${salt}`]))
    for (const tag of tags) await engine.removeImage(tag);
});

const home = () => join(folder, "../home");
const surroundings = () => ({
  cwd: folder,
  env: { BRIG_HOME: home(), CODEX_HOME: home(), DOCKER_HOST: watched.endpoint, OPENAI_API_KEY: "" },
});
const run = (...args: string[]) => brigHere(args, surroundings());
const builds = () => watched.requests.filter((one) => one === "POST /build").length;

async function write(files: Record<string, string>): Promise<void> {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(join(folder, name, ".."), { recursive: true });
    await writeFile(join(folder, name), text);
  }
}

const dockerfile = (...lines: string[]) =>
  [`FROM ${base}`, `LABEL brig.test-image=${salt}`, ...lines, ""].join("\n");

const needsBuildKit = () =>
  dockerfile(
    "RUN --mount=type=tmpfs,target=/scratch touch /scratch/x && echo mounted > /mounted",
    "COPY --chmod=755 program /usr/local/bin/program",
    "RUN <<END",
    "echo heredoc > /heredoc",
    "END",
  );

const program = "#!/bin/sh\ncat /mounted /heredoc\necho 1\n";

describe("an image that is built from a Dockerfile of the project", () => {
  it("is built by BuildKit once for each content", async () => {
    await write({ Dockerfile: needsBuildKit(), program, notes: "1", ".dockerignore": "notes\n" });
    const exec = async () => {
      const ended = await run("exec", "--dockerfile", "Dockerfile", "--", "program");
      expect(ended.exitCode, ended.stderr).toBe(0);
      return ended.stdout;
    };
    expect(await exec()).toBe("mounted\nheredoc\n1\n");
    expect(builds()).toBe(1);
    await write({ notes: "2" });
    expect(await exec()).toBe("mounted\nheredoc\n1\n");
    expect(builds()).toBe(1);
    await write({ program: program.replace("echo 1", "echo 2") });
    expect(await exec()).toBe("mounted\nheredoc\n2\n");
    expect(builds()).toBe(2);
    await chmod(join(folder, "program"), 0o600);
    await exec();
    expect(builds()).toBe(3);
  });

  it("may be given as a directory, in the place of an image's name", async () => {
    await write({ "deploy/Dockerfile": dockerfile("RUN echo from-directory > /told") });
    const ended = await run("exec", "--container-image", "./deploy", "--", "cat", "/told");
    expect(ended).toMatchObject({ stdout: "from-directory\n", exitCode: 0 });
  });

  it("serves a session of a model", async () => {
    await write({
      Dockerfile: dockerfile("RUN echo of-the-image > /told"),
      "script.yaml": "steps:\n  - calls:\n      - shell: { command: [cat, /told] }\n  - text: done\n",
    });
    const ended = await run("run", "--script", "script.yaml", "--dockerfile", "Dockerfile", "--json", "go");
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).toContain("of-the-image");
  });

  it("serves a sandbox of brig up, whose owner builds nothing", async () => {
    await write({ Dockerfile: dockerfile("RUN echo lasting > /told") });
    const options = surroundings();
    const up = await brig(["up", "--dockerfile", "Dockerfile"], options);
    expect(up.exitCode, up.stderr).toBe(0);
    const name = up.stdout.trim();
    try {
      const ended = await brig(["exec", "--in", name, "--", "cat", "/told"], options);
      expect(ended).toMatchObject({ stdout: "lasting\n", exitCode: 0 });
      expect(builds()).toBe(1);
    } finally {
      await brig(["rm", name], options);
    }
    const refused = await brig(["exec", "--in", name, "--dockerfile", "Dockerfile", "--", "true"], options);
    expect(refused.stderr).toContain("--in and --dockerfile cannot be combined");
  });

  it("is listed as the project's", async () => {
    await write({ Dockerfile: dockerfile() });
    await run("exec", "--dockerfile", "Dockerfile", "--", "true");
    const listed = JSON.parse((await run("image", "ls", "--json")).stdout);
    expect(listed).toContainEqual(
      expect.objectContaining({ name: "project", task: join(folder, "Dockerfile") }),
    );
  });

  it("is an option of the library too", async () => {
    await write({ Dockerfile: dockerfile("RUN echo library > /told") });
    const lines: string[] = [];
    const options = {
      workspace: folder,
      dockerfile: join(folder, "Dockerfile"),
      onProgress: lines.push.bind(lines),
    };
    await using sandbox = await Sandbox.create(options);
    expect((await sandbox.exec(["cat", "/told"])).stdout).toBe("library\n");
    expect(lines).toContainEqual(expect.stringMatching(/^image: .*RUN echo library/));
    await expect(Sandbox.create({ ...options, image: base })).rejects.toMatchObject({
      code: "usage.invalid",
    });
  });

  it("is that of a sandbox from a snapshot too", async () => {
    await write({ Dockerfile: dockerfile("RUN echo snapshot > /told"), file: "host" });
    await using first = await Sandbox.create({ workspace: folder, workspaceKind: "overlay" });
    await first.exec(["sh", "-c", "echo changed > file"]);
    const from = await first.snapshot();
    await using second = await Sandbox.create({ from, dockerfile: join(folder, "Dockerfile") });
    expect((await second.exec(["cat", "/told", "file"])).stdout).toBe("snapshot\nchanged\n");
  });

  it("is named by one option only", async () => {
    const ended = await run("exec", "--dockerfile", "x", "--container-image", base, "--", "true");
    expect(ended.exitCode).toBe(125);
    expect(ended.stderr).toContain("--dockerfile and --container-image both name the image");
  });
});

describe("a build", () => {
  it("that takes longer than two seconds tells of its steps, and how long they may take", async () => {
    // A label alone is no reason for the engine to run a command again.
    const lines = ["2.5", "4", "2"].map((seconds) => `RUN sleep ${seconds} # ${salt}`);
    await write({ Dockerfile: dockerfile(...lines) });
    const args = ["exec", "--dockerfile", "Dockerfile", "--", "echo", "done"];
    await using terminal = await Terminal.open(args, { ...surroundings(), columns: 150 });
    await terminal.waitForScreen(/building the image: step 3 of 4, .* left: RUN sleep 4 #/);
    await terminal.waitForScreen(/^done$/m);
    expect((await terminal.end()).exitStatus).toBe(0);
    expect(terminal.screen.rows.join("\n")).not.toContain("building the image");
  });

  it("has a plain line now and then where nothing can be drawn over", async () => {
    await write({ Dockerfile: dockerfile(`RUN sleep 4 # plain ${salt}`) });
    const ended = await run("exec", "--dockerfile", "Dockerfile", "--", "echo", "done");
    expect(ended.stdout).toBe("done\n");
    expect(ended.stderr.match(/^building the image: step 2 of 2, .*: RUN sleep 4 # plain/gm)).toHaveLength(1);
  });

  it("that fails names the step and what it printed", async () => {
    await write({ Dockerfile: dockerfile("RUN true", "RUN echo the-reason && seq 100 && exit 3") });
    const ended = await run("exec", "--dockerfile", "Dockerfile", "--", "true");
    expect(ended.exitCode).toBe(125);
    expect(ended.stderr).toContain(`building the image of ${join(folder, "Dockerfile")} failed`);
    expect(ended.stderr).toMatch(/this step failed: \[3\/3\] RUN echo the-reason/);
    expect(ended.stderr).toContain("exit code: 3");
  });

  it("that is interrupted leaves no image of a name", async () => {
    await write({ Dockerfile: dockerfile("RUN echo begun && sleep 600") });
    const options = surroundings();
    const running = brig(["exec", "--dockerfile", "Dockerfile", "--", "true"], options);
    await expect.poll(builds).toBe(1);
    running.kill("SIGINT");
    expect((await running).exitCode).toBe(130);
    expect(await engine.listImages([`brig.test-image=${salt}`])).toEqual([]);
  });
});

describe("a hostile Dockerfile", () => {
  const fails = async (args: string[] = ["--dockerfile", "Dockerfile"]) => {
    const ended = await run("exec", ...args, "--", "true");
    expect(ended.exitCode).toBe(125);
    return ended.stderr;
  };

  it("has no builder of its own fetched", async () => {
    await write({ Dockerfile: `# syntax=builder.invalid/hostile\n${dockerfile("RUN echo plain > /told")}` });
    const ended = await run("exec", "--dockerfile", "Dockerfile", "--", "cat", "/told");
    expect(ended).toMatchObject({ stdout: "plain\n", exitCode: 0 });
  });

  it.each(["--security=insecure", "--network=host"])("gets no step with %s", async (flag) => {
    await write({ Dockerfile: dockerfile(`RUN ${flag} echo got-it`) });
    const words = await fails();
    expect(words).toContain("building the image of");
    expect(words).not.toMatch(/^ {2}got-it$/m);
  });

  it("reads nothing outside of its directory", async () => {
    await write({ "../secret": "the-secret", Dockerfile: dockerfile("COPY ../secret /told") });
    expect(await fails()).not.toContain("the-secret");
    await write({ Dockerfile: dockerfile("COPY link /told") });
    await symlink(join(folder, "../secret"), join(folder, "link"));
    expect(await fails()).not.toContain("the-secret");
    await rm(join(folder, "Dockerfile"));
    await symlink(join(folder, "../secret"), join(folder, "Dockerfile"));
    expect(await fails()).toContain("links are not followed");
    expect(await fails(["--container-image", "."])).toContain("no regular file of the build context");
  });

  it("is read only so far, and never waited for", async () => {
    await execa("mkfifo", [join(folder, "Dockerfile")]);
    expect(await fails()).toContain("neither a regular file nor a directory");
    expect(await fails(["--container-image", "."])).toContain("FIFO");
    await rm(join(folder, "Dockerfile"));
    await write({ Dockerfile: `${dockerfile()}#${"x".repeat(4 * 1024 * 1024)}\n` });
    expect(await fails()).toContain("is longer than 4.0 MiB");
    expect(builds()).toBe(0);
  });

  it("cannot say that its image is another's, nor whom commands run as", async () => {
    await write({
      Dockerfile: dockerfile(
        "LABEL brig.session=forged brig.task=forged",
        "USER 0",
        "ENV LD_PRELOAD=/x HOME=/",
      ),
    });
    const script = "id -u; echo $HOME$LD_PRELOAD";
    const ended = await run("exec", "--dockerfile", "Dockerfile", "--", "sh", "-c", script);
    expect(ended.stdout).toBe(`${process.getuid?.()}\n/home/brig\n`);
    const listed = JSON.parse((await run("image", "ls", "--json")).stdout);
    expect(listed).toContainEqual(
      expect.objectContaining({ name: "project", task: join(folder, "Dockerfile") }),
    );
  });
});

describe("--gpus", () => {
  it("asks the engine for them, which refuses clearly where it has none", async () => {
    const bodies = await createdBodies(async (endpoint) => {
      const options = { ...surroundings(), env: { ...surroundings().env, DOCKER_HOST: endpoint } };
      const ended = await brigHere(["exec", "--gpus", "2", "--", "true"], options);
      expect(ended.exitCode).toBe(125);
      expect(ended.stderr).toContain("the engine has no graphics processors to give to a container");
      await brigHere(["exec", "--gpus", "all", "--", "true"], options);
      expect((await brigHere(["exec", "--", "true"], options)).exitCode).toBe(0);
      expect((await brigHere(["exec", "--gpus", "some", "--", "true"], options)).stderr).toContain('"some"');
    });
    const requests = bodies.map(({ HostConfig }) => HostConfig.DeviceRequests);
    const gpus = (Count: number) => [
      { Driver: "", Count, DeviceIDs: null, Capabilities: [["gpu"]], Options: {} },
    ];
    expect(requests).toEqual([gpus(2), gpus(-1), undefined]);
  });
});

type Body = { HostConfig: { DeviceRequests?: unknown } };

/** What the engine is asked to create while `during` uses it through this socket. */
async function createdBodies(during: (endpoint: string) => Promise<void>): Promise<Body[]> {
  await using recording = await recordingEngine();
  await during(recording.endpoint);
  return recording.bodiesOf("/containers/create") as Body[];
}
