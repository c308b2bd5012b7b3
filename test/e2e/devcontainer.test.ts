import { randomBytes } from "node:crypto";
import { mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { Engine } from "../../src/sandbox/docker/engine-types.js";
import { ensureImages } from "../../src/sandbox/images/ensure.js";
import { brigHere } from "../support/cli-here.js";
import { testEngine } from "../support/engine.js";
import { faultyEngine } from "../support/faulty-engine.js";
import { recordingEngine } from "../support/recording-engine.js";
import { temporaryDirectory } from "../support/sandbox.js";

let engine: Engine;
let base: string;
let root: string;
let folder: string;
let salt: string;

beforeAll(async () => {
  engine = await testEngine();
  ({ base } = await ensureImages(engine, { names: ["base"] }));
});
beforeEach(async () => {
  salt = randomBytes(8).toString("hex");
  const directory = await temporaryDirectory();
  onTestFinished(async () => await directory[Symbol.asyncDispose]());
  root = directory.path;
  folder = join(root, "app");
  for (const name of ["app", "home"]) await mkdir(join(root, name));
});
afterEach(async () => {
  for (const { tags } of await engine.listImages([`brig.test-image=${salt}`]))
    for (const tag of tags) await engine.removeImage(tag);
});

async function write(files: Record<string, string | object>): Promise<void> {
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content);
    await writeFile(join(folder, name), text);
  }
}

const usual = ".devcontainer/devcontainer.json";

function exec(flags: string[], script: string, env: Record<string, string> = {}) {
  const home = join(root, "home");
  const args = ["exec", "--devcontainer", ...flags, "--", "sh", "-c", script];
  return brigHere(args, {
    cwd: folder,
    env: { BRIG_HOME: home, CODEX_HOME: home, OPENAI_API_KEY: "", ...env },
  });
}

async function refusal(content: string | object, flags: string[] = []): Promise<string> {
  await write({ [usual]: content });
  const ended = await exec(flags, "echo it-ran");
  expect(ended.exitCode).toBe(125);
  expect(ended.stdout).toBe("");
  return ended.stderr;
}

describe("brig exec --devcontainer", () => {
  it("builds the image, gives its variables, and runs its commands before the command", async () => {
    await write({
      "docker/Dockerfile": [
        `FROM ${base} AS first`,
        `LABEL brig.test-image=${salt}`,
        "ARG WORD=none",
        "COPY of-the-project /of-the-project",
        "RUN echo $WORD > /word",
        "ENV PATH=/opt/image/bin:/usr/bin:/bin",
        "FROM first AS second",
        "RUN exit 1",
        "",
      ].join("\n"),
      "of-the-project": "a file of the project\n",
      [usual]: `{
        // Comments and trailing commas are usual in this file.
        "name": "an example",
        "build": { "dockerfile": "../docker/Dockerfile", "context": "..", "args": { "WORD": "built" }, "target": "first", },
        "containerEnv": { "OF_CONTAINER": "\${containerWorkspaceFolderBasename}", "BOTH": "file" },
        "remoteEnv": { "PATH": "\${containerEnv:PATH}:/opt/remote", "GONE": null },
        "mounts": ["source=\${localWorkspaceFolder}/docker,target=\${containerWorkspaceFolder}/docker,type=bind"],
        "onCreateCommand": "echo one >> made; false || true",
        "updateContentCommand": ["sh", "-c", "echo 'two three' >> made"],
        "postCreateCommand": { "a": "echo four >> made", "b": ["touch", "it's"] },
        "customizations": { "vscode": { "extensions": [] } },
        "forwardPorts": [3000],
        "privileged": false, "capAdd": [], "features": {},
        "remoteUser": "vscode",
      }`,
    });
    const script = 'cat /of-the-project /word made; ls "it\'s"; echo $OF_CONTAINER $BOTH $PATH; id -u';
    const ended = await exec(["-e", "BOTH=flag"], script);
    expect(ended.stdout, ended.stderr).toBe(
      [
        ...["a file of the project", "built", "one", "two three", "four", "it's"],
        ...["app flag /opt/image/bin:/usr/bin:/bin:/opt/remote", `${process.getuid?.()}`, ""],
      ].join("\n"),
    );
    expect(ended.stderr).toBe(
      "brig: devcontainer.json: commands run with your user id, not as vscode; --user UID:GID is for another\n",
    );
  });

  it("finds the other place of the file, and says what it does not do", async () => {
    await write({
      ".devcontainer.json": {
        image: base,
        workspaceFolder: "/workspaces/app",
        postStartCommand: "touch started",
        containerEnv: { NODE_OPTIONS: "--require=/x.js", FINE: "1" },
      },
    });
    const ended = await exec([], "echo $FINE $NODE_OPTIONS; ls");
    expect(ended.stdout).toBe("1\n");
    expect(ended.stderr).toContain(`the workspace is at ${folder}, not at /workspaces/app`);
    expect(ended.stderr).toContain("postStartCommand is not run");
    expect(ended.stderr).toContain("NODE_OPTIONS is left out");
  });

  it("fails where its commands do, and --setup takes their place", async () => {
    await write({ [usual]: { image: base, postCreateCommand: "echo the-reason; exit 4" } });
    const failed = await exec([], "echo it-ran");
    expect(failed.exitCode).toBe(125);
    expect(failed.stdout).toBe("");
    expect(failed.stderr).toContain("the-reason");
    expect((await exec(["--setup", "true"], "echo it-ran")).stdout).toBe("it-ran\n");
  });

  it("serves a session of a model, whose own set-up and its network it replaces", async () => {
    await write({
      [usual]: { image: base, postCreateCommand: "echo of-the-file > made" },
      "script.yaml": "steps:\n  - calls:\n      - shell: { command: [cat, made] }\n  - text: done\n",
      "../home/config.toml": '[setup]\ncommand = ["touch", "own"]\nnetwork = "allowlist:example.com"\n',
    });
    const home = join(root, "home");
    const ended = await brigHere(["run", "--devcontainer", "--script", "script.yaml", "--json", "go"], {
      cwd: folder,
      env: { BRIG_HOME: home, CODEX_HOME: home },
    });
    expect(ended.exitCode, ended.stderr).toBe(0);
    expect(ended.stdout).toContain("of-the-file");
    expect(ended.stdout).not.toContain("example.com");
    await expect(readFile(join(folder, "own"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("reads no variable of the host that nobody has allowed", async () => {
    const content = { image: base, containerEnv: { STOLEN: `\${localEnv:BRIG_TEST_TOKEN:none}` } };
    await write({ [usual]: content });
    const env = { BRIG_TEST_TOKEN: "the-token" };
    const refused = await exec([], "echo $STOLEN", env);
    expect(refused.exitCode).toBe(125);
    expect(refused.stderr).toContain("wants to read BRIG_TEST_TOKEN of your environment");
    expect(refused.stderr).toContain("--devcontainer-env BRIG_TEST_TOKEN");
    expect(refused.stderr).not.toContain("the-token");
    const allowed = await exec(["--devcontainer-env", "BRIG_TEST_TOKEN"], "echo $STOLEN", env);
    expect(allowed.stdout).toBe("the-token\n");
  });
});

describe("a hostile devcontainer.json", () => {
  it.each([
    ["features", { "ghcr.io/devcontainers/features/docker-in-docker:2": {} }],
    ["dockerComposeFile", "compose.yaml"],
    ["runArgs", ["--privileged"]],
    ["runArgs", ["--network=host"]],
    ["privileged", true],
    ["privileged", "true"],
    ["capAdd", ["SYS_ADMIN"]],
    ["securityOpt", ["seccomp=unconfined"]],
    ["workspaceMount", "source=/,target=/host,type=bind"],
    ["initializeCommand", "touch ran-on-the-host"],
    ["secrets", { TOKEN: {} }],
    ["appPort", [80]],
    ["unknownProperty", 1],
    ["__proto__ ", 1],
  ])("is refused by the name %s", async (name, value) => {
    const words = await refusal(
      `{"image": ${JSON.stringify(base)}, ${JSON.stringify(name)}: ${JSON.stringify(value)}}`,
    );
    expect(words).toContain(JSON.stringify(name));
    await expect(readFile(join(folder, "ran-on-the-host"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it.each([
    "source=/var/run/docker.sock,target=/var/run/docker.sock,type=bind",
    "source=/,target=/host,type=bind",
    `source=\${localWorkspaceFolder}/.git,target=/git,type=bind`,
    `source=\${localWorkspaceFolder}/../home,target=\${localWorkspaceFolder}/../home,type=bind`,
    "source=cache,target=/cache,type=volume",
    { type: "bind", source: "/etc", target: "/etc" },
    { type: "bind", target: "/etc" },
    "",
  ])("gets no mount %s", async (mount) => {
    expect(await refusal({ image: base, mounts: [mount] })).toContain('"mounts", which brig refuses');
  });

  it("builds with nothing that is outside of the workspace, by a link neither", async () => {
    await write({ "../outside/Dockerfile": `FROM ${base}\n`, "../outside/secret": "the-secret" });
    const builds = [
      { dockerfile: "../../outside/Dockerfile", context: "../../outside" },
      { dockerfile: "Dockerfile", context: "../.." },
      { dockerfile: "linked/Dockerfile", context: "linked" },
      { dockerfile: "../linked/Dockerfile", context: "../linked" },
    ];
    await mkdir(join(folder, ".devcontainer"));
    await symlink(join(root, "outside"), join(folder, "linked"));
    await symlink(join(root, "outside"), join(folder, ".devcontainer/linked"));
    await using watched = await faultyEngine();
    for (const build of builds) {
      await write({ [usual]: { build }, ".devcontainer/Dockerfile": `FROM ${base}\n` });
      const ended = await exec([], "true", { DOCKER_HOST: watched.endpoint });
      expect(ended.exitCode, JSON.stringify(build)).toBe(125);
      expect(ended.stderr).toContain("outside of the workspace");
    }
    expect(watched.requests).not.toContain("POST /build");
  });

  it("passes no options to the builder", async () => {
    const build = { dockerfile: "Dockerfile", options: ["--network=host"] };
    expect(await refusal({ build })).toContain('"build.options", which brig refuses');
  });

  it("is no link to a file of the host, whose text no error shows", async () => {
    await write({ "../secret": "the-secret" });
    await symlink(join(root, "secret"), join(folder, ".devcontainer.json"));
    const ended = await exec([], "true");
    expect(ended.stderr).toContain("is a link to a file outside of the workspace");
    await rm(join(folder, ".devcontainer.json"));
    expect(await refusal("the-secret {")).not.toContain("the-secret");
  });

  it("is read only so far, and must be what it says", async () => {
    expect(await refusal(`{"image": "x", "name": "${"x".repeat(1024 * 1024)}"}`)).toContain("is longer than");
    expect(await refusal(`${"[".repeat(100_000)}`)).toContain("is no JSON object");
    expect(await refusal({})).toContain('neither an "image" nor a "build.dockerfile"');
    expect(await refusal({ image: base, containerEnv: { "A=B": "x" } })).toContain("is not valid");
    expect(await refusal({ image: base, containerEnv: { A: 1 } })).toContain("is not valid");
    expect(await refusal({ image: base, postCreateCommand: `echo \${devcontainerId}` })).toContain(
      "does not replace",
    );
    expect(await refusal({ image: "brig-test/none" })).toContain('the engine has no image "brig-test/none"');
  });

  it("leaves the request to the engine as it is without it", async () => {
    const bodies = async (flags: string[]) => {
      await using recording = await recordingEngine();
      const home = join(root, "home");
      const ended = await brigHere(["exec", ...flags, "--", "true"], {
        cwd: folder,
        env: { BRIG_HOME: home, CODEX_HOME: home, DOCKER_HOST: recording.endpoint },
      });
      expect(ended.exitCode, ended.stderr).toBe(0);
      return recording.bodiesOf("/containers/create").map(asComparable);
    };
    await write({
      [usual]: {
        image: base,
        containerEnv: { PATH: "/x:/usr/bin:/bin", LD_PRELOAD: "/x.so" },
        remoteUser: "root",
        containerUser: "root",
        workspaceFolder: "/",
        init: true,
        hostRequirements: { gpu: true },
        postCreateCommand: "true",
      },
    });
    expect(await bodies(["--devcontainer"])).toEqual(await bodies(["--container-image", base]));
  });
});

/** What differs from start to start: ids, times and tokens. */
function asComparable(body: unknown): unknown {
  const { Labels, Cmd, ...others } = body as { Labels: object; Cmd: string[] };
  return { ...others, labels: Object.keys(Labels), arguments: Cmd.length };
}
