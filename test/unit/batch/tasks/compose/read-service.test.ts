import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { interpolated } from "../../../../../src/batch/tasks/compose.js";
import { readHarborTask } from "../../../../../src/batch/tasks/harbor/read-task.js";
import { faultsOf, harborDirectory, readToml } from "../harbor/harbor-files.js";

const reference = (text: string) => `$\{${text}}`;

/** A task whose environment has this Compose file. */
const withCompose = (compose: string, files: Record<string, string | undefined> = {}) => ({
  files: { "environment/docker-compose.yaml": compose, ...files },
});

const main = (lines: string) => `services:\n  main:\n${lines.replace(/^/gm, "    ")}\n`;
const problemsOf = async (lines: string) =>
  (await faultsOf({}, withCompose(main(lines)))).map((fault) =>
    fault.replace("environment/docker-compose.yaml: ", ""),
  );

describe("what a Compose file mounts of the task's own files", () => {
  it("is copied, without the tests and the solution, and belongs to root where it is read-only", async () => {
    const volumes = `
image: debian:12
volumes:
  - ./data/:/data/
  - ./data/one.csv:/etc/one.csv:ro
  - { type: bind, source: .., target: /whole, read_only: true }
  - ..:/tests`;
    const files = { "environment/data/one.csv": "a", "solution/solve.sh": "#!/bin/sh\n" };
    const { environment, source, warnings } = await readToml({}, withCompose(main(volumes), files));
    expect(environment.copies).toEqual([
      { source: join(source, "environment/data"), target: "/data", exclude: [], isReadOnly: false },
      {
        source: join(source, "environment/data/one.csv"),
        target: "/etc/one.csv",
        exclude: [],
        isReadOnly: true,
      },
      {
        source,
        target: "/whole",
        exclude: ["solution", "solution/solve.sh", "tests", "tests/test.sh"],
        isReadOnly: true,
      },
    ]);
    expect(warnings).toEqual([expect.stringContaining('are left out of the copy of ".." at "/whole"')]);
  });

  it.each([
    ["./../tests:/hidden", 'mounts "./../tests", which the agent must not see'],
    ["../..:/above", 'mounts "../.." of the host, which no task may'],
    ["./data:/", 'mounts something at "/", where nothing can be mounted'],
    ["./data:relative", 'mounts something at "relative", where nothing can be mounted'],
  ])("is refused for %s", async (volume, problem) => {
    const files = { "environment/data/one.csv": "a" };
    expect(await faultsOf({}, withCompose(main(`image: debian:12\nvolumes: ['${volume}']`), files))).toEqual([
      `environment/docker-compose.yaml: volumes: ${problem}`,
    ]);
  });
});

describe("a Compose file with one service", () => {
  it("has that name and no other, as Harbor has it", async () => {
    const { environment } = await readToml(
      {},
      { files: { "environment/docker-compose.yml": main("image: other:1\nprivileged: true") } },
    );
    expect(environment.image).toMatchObject({ kind: "build", dockerfile: "Dockerfile" });
  });

  it("may ask for the name of its project", async () => {
    const named = main(`image: debian:12\nenvironment: { P: "${reference("COMPOSE_PROJECT_NAME")}" }`);
    expect((await readToml({}, withCompose(named))).environment.env.P).toMatch(/^[a-z0-9]+$/);
  });

  it("in the older way of Harbor says what brig does anyway", async () => {
    const compose = main(`
build:
  context: ${reference("CONTEXT_DIR")}
image: ${reference("MAIN_IMAGE_NAME")}
command: ["sh", "-c", "sleep infinity"]
environment:
  - TEST_DIR=${reference("TEST_DIR")}
volumes:
  - ${reference("HOST_VERIFIER_LOGS_PATH")}:${reference("ENV_VERIFIER_LOGS_PATH")}
  - ${reference("HOST_AGENT_LOGS_PATH")}:${reference("ENV_AGENT_LOGS_PATH")}
deploy:
  resources:
    limits:
      cpus: ${reference("CPUS")}
      memory: ${reference("MEMORY")}`);
    const { environment, warnings } = await readToml(
      { version: "1.0", environment: { cpus: 3, memory: "3G" } },
      withCompose(compose),
    );
    expect(environment).toMatchObject({
      image: { kind: "build", dockerfile: "Dockerfile", buildArgs: {}, timeoutSec: 600 },
      env: { TEST_DIR: "/tests" },
      limits: { cpus: 3, memoryMb: 3072, storageMb: 10_240 },
    });
    expect(warnings).toEqual([]);
  });

  it("is honoured: build, environment, directory, user, network and limits", async () => {
    const directory = await harborDirectory(
      {
        environment: { cpus: 8, workdir: "/elsewhere", env: { A: "task", B: "task" } },
        agent: { user: "agent" },
      },
      {
        "environment/docker-compose.yaml": main(`
x-note: anything
container_name: box
build:
  context: ./app
  dockerfile: docker/Dockerfile
  args:
    VERSION: 3
    FROM_HOST:
environment: { A: compose, ON: true, EMPTY: "" }
working_dir: /srv
user: 1000
network_mode: none
cpus: 0.5
mem_limit: 1g
privileged: false
cap_add: []`),
        "environment/app/docker/Dockerfile": "FROM debian:12",
      },
    );
    const read = await readHarborTask(directory, { variables: { FROM_HOST: "h" } });
    if (read.kind !== "task") throw new Error(JSON.stringify(read.faults));
    expect(read.task.environment).toEqual({
      image: {
        kind: "build",
        context: join(directory, "environment/app"),
        dockerfile: "docker/Dockerfile",
        buildArgs: { VERSION: "3", FROM_HOST: "h" },
        timeoutSec: 600,
      },
      files: null,
      workdir: "/srv",
      env: { A: "compose", B: "task", ON: "true", EMPTY: "" },
      network: { mode: "no-network", allowedHosts: [] },
      limits: { cpus: 0.5, memoryMb: 1024, storageMb: null },
      healthcheck: null,
    });
    expect(read.task.steps[0]).toMatchObject({ agent: { user: "agent" }, verifier: { user: "1000" } });
  });

  it("gives the image, unless that is only the name of what is built", async () => {
    const image = async (toml: Record<string, unknown>, files: Record<string, undefined> = {}) =>
      (await readToml(toml, withCompose(main("image: python:3.12"), files))).environment.image;
    const named = { kind: "reference", reference: "python:3.12" };
    expect(await image({}, { "environment/Dockerfile": undefined })).toEqual(named);
    expect(await image({ environment: { docker_image: "other" } })).toEqual(named);
    expect(await image({})).toMatchObject({ kind: "build" });
  });

  it("may name the image that the task names, and then needs no other", async () => {
    expect(
      await faultsOf({}, withCompose(main("init: true"), { "environment/Dockerfile": undefined })),
    ).toEqual(["has no image"]);
  });

  it.each([
    ["privileged: true", "privileged"],
    ["cap_add: [SYS_ADMIN]", "cap_add"],
    ["devices: ['/dev/kvm:/dev/kvm']", "devices"],
    ["ports: ['8080:80']", "ports"],
    ["pid: host", "pid"],
    ["ipc: host", "ipc"],
    ["security_opt: ['seccomp:unconfined']", "security_opt"],
    ["extra_hosts: ['a:1.2.3.4']", "extra_hosts"],
    ["tmpfs: /tmp", "tmpfs"],
    ["shm_size: 1g", "shm_size"],
    ["networks: [one]", "networks"],
    ["env_file: .env", "env_file"],
    ["depends_on: [db]", "depends_on"],
    ["healthcheck: { test: 'true' }", "healthcheck"],
    ["runtime: nvidia", "runtime"],
    ["volumes_from: [db]", "volumes_from"],
    ["group_add: [docker]", "group_add"],
  ])("is refused by name for %s", async (lines, key) => {
    expect(await problemsOf(lines)).toEqual([`${key}: is not supported: what it asks for would be missing`]);
  });

  it.each([
    ["network_mode: host", 'network_mode: is "host", and may only be none or bridge'],
    ["network_mode: 'container:x'", 'network_mode: is "container:x", and may only be none or bridge'],
    [
      "volumes: ['/var/run/docker.sock:/var/run/docker.sock']",
      'volumes: mounts "/var/run/docker.sock" of the host, which no task may',
    ],
    ["volumes: ['./data:/data:ro']", 'volumes: mounts "./data" of the host, which no task may'],
    ["volumes: ['~/.ssh:/root/.ssh']", 'volumes: mounts "~/.ssh" of the host, which no task may'],
    [
      "volumes: [{ type: bind, source: /, target: /host }]",
      'volumes: mounts "/" of the host, which no task may',
    ],
    [
      "command: nginx -g 'daemon off;'",
      "command: is \"nginx -g 'daemon off;'\": brig starts no program of its own in a task's container",
    ],
    [
      "entrypoint: [/start.sh]",
      'entrypoint: is "/start.sh": brig starts no program of its own in a task\'s container',
    ],
    [
      "command: sh -c 'sleep infinity; curl x'",
      "command: is \"sh -c 'sleep infinity; curl x'\": brig starts no program of its own in a task's container",
    ],
    ["build: ..", 'build: has the context "..", which is outside of environment'],
    ["build: ../tests", 'build: has the context "../tests", which is outside of environment'],
    ["build: /", 'build: has the context "/", which is outside of environment'],
    [
      "build: https://example.com/x.git",
      'build: has the context "https://example.com/x.git", which is outside of environment',
    ],
    [
      "build: { dockerfile: ../../solution/Dockerfile }",
      'build: names the Dockerfile "../../solution/Dockerfile", which the context does not have',
    ],
    ["build: { dockerfile: Other }", 'build: names the Dockerfile "Other", which the context does not have'],
    ["build: { secrets: [x] }", 'build: has the unknown key "secrets"'],
    ["mem_limit: lots", 'mem_limit: is "lots" and must be a size such as 2g'],
    ["cpus: many", 'cpus: is "many" and must be a number of processors'],
    ["working_dir: app", 'working_dir: is "app": it must be an absolute path'],
    ["deploy: { replicas: 2, resources: {} }", 'deploy: has the unknown key "replicas"'],
  ])("is refused for %s", async (lines, problem) => {
    expect(await problemsOf(lines)).toEqual([problem]);
  });

  it("may have a volume of its own, with a warning", async () => {
    const compose = `${main("volumes: ['data:/var/lib/data', '/cache']")}volumes:\n  data:\n`;
    expect((await readToml({}, withCompose(compose))).warnings).toEqual([
      'environment/docker-compose.yaml: the volume at "/var/lib/data" is a directory of the container itself',
      'environment/docker-compose.yaml: the volume at "/cache" is a directory of the container itself',
    ]);
  });
});

describe("a Compose file", () => {
  it.each([
    [
      "with further services",
      "services:\n  main: { image: x }\n  db: { image: y }\n",
      'has the services "db", and brig runs only "main"',
    ],
    ["without the service", "services: {}\n", 'has no service "main"'],
    ["with networks", `${main("image: x")}networks:\n  inner: {}\n`, "networks: is not supported"],
    ["with includes", `include: [other.yaml]\n${main("image: x")}`, "include: is not supported"],
    ["that is a list", "- main\n", 'has no service "main"'],
    ["that is no YAML", "services: [\n", expect.stringMatching(/^line \d+: /)],
    [
      "with keys that occur twice",
      "services: {}\nservices: {}\n",
      expect.stringMatching(/^line 2: Map keys must be unique/),
    ],
    [
      "whose aliases explode",
      `a: &a [1,1,1,1,1,1,1,1,1]\n${"bcdefgh"
        .split("")
        .map((n, i) => `${n}: &${n} [${Array(9).fill(`*${"abcdefgh"[i]}`)}]`)
        .join("\n")}\n`,
      "is too deep, or repeats itself too often",
    ],
    ["that is nested without end", `services: ${"[".repeat(20_000)}`, expect.stringMatching(/line|deep/)],
  ])("%s is refused", async (_, compose, problem) => {
    const faults = await faultsOf({}, withCompose(compose));
    expect(faults.map((fault) => fault.replace("environment/docker-compose.yaml: ", ""))).toContainEqual(
      problem,
    );
  });
});

describe("variables of a Compose file", () => {
  const variables = { A: "a", EMPTY: "" };

  it.each([
    ["$A-x", "a-x"],
    [reference("A"), "a"],
    [reference("NONE:-b c"), "b c"],
    [reference("EMPTY:-b"), "b"],
    [reference("EMPTY-b"), ""],
    [reference("EMPTY"), ""],
    [reference("A:+set"), "set"],
    [reference("NONE+set"), ""],
    ["$$A $$", "$A $"],
    ["plain", "plain"],
  ])("%s becomes %j", (text, expected) => {
    expect(interpolated(text, variables)).toEqual({ kind: "text", text: expected });
  });

  it.each([
    [reference("NONE"), "asks for the variable NONE, which is not set"],
    [reference("NONE:?say so"), "asks for the variable NONE, which is not set"],
    ["$toString", "asks for the variable toString, which is not set"],
    ["100$", "has a $ that is no variable; write $$ for the character"],
    [reference("A"), null],
  ])("%s is refused: %s", (text, reason) => {
    const result = interpolated(text, variables);
    expect(result.kind === "refused" ? result.reason : null).toBe(reason);
  });
});
