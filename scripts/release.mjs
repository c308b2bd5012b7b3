// Checks that this checkout can be released, and releases it only if asked to. Everything that it makes is in .release.
//   npm run release                      a dry run: does all but publish, and prints the commands that would
//   npm run release -- --publish         runs these commands as well; only in CI, because the package is published with provenance
//   npm run release -- --json            one line for each step on stdout
//   npm run release -- --skip STEP,…     leaves steps out, for a try without a network or an engine
// Exit status: 0 all steps are done, 1 one failed, 2 wrong usage, 130 interrupted.
import { createWriteStream } from "node:fs";
import { mkdir, mkdtemp, readFile, realpath, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { parseArgs } from "node:util";
import { execa } from "execa";
import {
  changelogEntry,
  checkLicences,
  checkSettings,
  checkVersion,
  ReleaseProblem,
} from "./release/checks.js";
import { Progress } from "./setup/progress.js";
import { root } from "./setup/run.js";

const registry = "ghcr.io/brig-sandbox";
const architectures = ["amd64", "arm64"];
const folder = ".release";
const target = join(root, folder);

/** In their order. What a step returns is printed, and the next ones find it in `found`. */
const steps = {
  version: ["checking the version", findVersion],
  changelog: ["looking for the version in CHANGELOG.md", findChangelogEntry],
  settings: [
    "checking the settings of npm publish",
    async ({ manifest }) => ({ ...checkSettings(manifest) }),
  ],
  build: ["building", build],
  api: ["comparing the public API with its report", compareApi],
  licences: [
    "looking for the licences of what is bundled",
    async () => ({ packages: await checkLicences(root) }),
  ],
  pack: ["packing", pack],
  install: ["installing the archive in an empty home", install],
  demo: ["running brig demo from it", demo],
  images: ["preparing the images", prepareImages],
  publish: ["publishing", publish],
};

const interruption = new AbortController();
const { signal } = interruption;
for (const name of ["SIGINT", "SIGTERM"]) process.on(name, () => interruption.abort());
const progress = new Progress(process.stderr, "release");

try {
  await release(readFlags());
} catch (error) {
  progress.stop();
  process.exitCode = signal.aborted ? 130 : (error.exitStatus ?? 1);
  if (!signal.aborted) {
    process.stderr.write(`release: ${error.message}\n`);
    if (error.hint) process.stderr.write(`hint: ${error.hint}\n`);
  }
}

function readFlags() {
  try {
    const options = { publish: { type: "boolean" }, json: { type: "boolean" }, skip: { type: "string" } };
    const { publish: publishes = false, json = false, skip = "" } = parseArgs({ options }).values;
    const skipped = skip.split(",").filter((name) => name !== "");
    const unknown = skipped.filter((name) => !Object.hasOwn(steps, name));
    if (unknown.length > 0) throw new Error(`there is no step ${unknown.join(", ")}`);
    if (publishes && skipped.length > 0) throw new Error("--publish leaves no step out");
    if (publishes && process.env.GITHUB_ACTIONS !== "true" && process.env.GITLAB_CI !== "true")
      throw new Error(
        "npm publishes with provenance from GitHub Actions and GitLab CI only, and this is neither",
      );
    return { publishes, json, skipped };
  } catch (cause) {
    const hint = `the steps are ${Object.keys(steps).join(", ")}; the beginning of scripts/release.mjs describes the flags`;
    throw Object.assign(new ReleaseProblem(cause.message, { hint, cause }), { exitStatus: 2 });
  }
}

async function release({ publishes, json, skipped }) {
  const report = (line) => void (json && process.stdout.write(`${JSON.stringify(line)}\n`));
  const readJson = async (name) => JSON.parse(await readFile(join(root, name), "utf8"));
  const bare = await realpath(await mkdtemp(join(tmpdir(), "brig-release-")));
  const [manifest, lock] = [await readJson("package.json"), await readJson("package-lock.json")];
  const context = { manifest, lock, publishes, bare, found: {} };
  try {
    for (const [name, [title, run]] of Object.entries(steps)) {
      if (skipped.includes(name) || (name === "publish" && !publishes)) {
        report({ type: "step.skipped", step: name });
        continue;
      }
      try {
        context.found[name] = await progress.step(title, (onLine) => run(context, onLine));
      } catch (error) {
        report({ type: "step.failed", step: name, message: error.message, hint: error.hint });
        throw error;
      }
      report({ type: "step.ended", step: name, ...context.found[name] });
    }
    const commands = publishCommands(context);
    report({ type: "release.ended", published: publishes, commands });
    if (!json) process.stdout.write(summaryText(context, commands));
  } finally {
    await rm(bare, { recursive: true, force: true });
  }
}

function summaryText({ publishes, found }, commands) {
  const obstacles = found.version?.obstacles.map((text) => `before --publish: ${text}\n`) ?? [];
  const title = publishes ? "released with" : "nothing was published; --publish would run";
  return [...obstacles, `${title}:\n`, ...commands.map((command) => `  ${command}\n`)].join("");
}

async function findVersion({ manifest, lock, publishes }) {
  const version = checkVersion(manifest, lock);
  const git = async (...argv) => (await execa("git", argv, { cwd: root, cancelSignal: signal })).stdout;
  const isClean = (await git("status", "--porcelain")) === "";
  const commit = await git("rev-parse", "HEAD");
  const tagged = await git("tag", "--list", `v${version}`, "--format", "%(objectname) %(*objectname)");
  // In a dry run they are only named: between two releases both are usual.
  const obstacles = [
    ...(isClean
      ? []
      : ["there are changes that are not committed; commit them, or put them away: git stash"]),
    ...(tagged === "" || tagged.includes(commit)
      ? []
      : [`v${version} is released already; take the next version: npm version --no-git-tag-version patch`]),
  ];
  if (publishes && obstacles.length > 0)
    throw new ReleaseProblem("this checkout cannot be published", { hint: obstacles.join("\n") });
  return { version, commit, obstacles };
}

async function findChangelogEntry({ manifest }) {
  const text = await readFile(join(root, "CHANGELOG.md"), "utf8").catch(() => "");
  return changelogEntry(text, manifest.version);
}

/** From nothing, so that no file of an earlier build is packed. */
async function build(_, onLine) {
  await rm(join(root, "dist"), { recursive: true, force: true });
  await run(["npm", "run", "build"], { cwd: root, onLine });
}

async function compareApi() {
  const { apiReport, reportFile } = await import("./api-report/report.js");
  if (apiReport() !== (await readFile(reportFile, "utf8")))
    throw new ReleaseProblem("the public API differs from docs/api/brigbox.api.md", {
      hint: "if it is to change, run npm run api and commit the file",
    });
}

async function pack({ manifest }, onLine) {
  await rm(target, { recursive: true, force: true });
  await mkdir(target);
  // Without the scripts: it was built in a step of its own.
  await run(["npm", "pack", "--ignore-scripts", "--pack-destination", target], { cwd: root, onLine });
  const archive = join(target, `${manifest.name}-${manifest.version}.tgz`);
  return { archive, bytes: (await stat(archive)).size };
}

async function install({ manifest, bare, found }, onLine) {
  const archive = required(found.pack, "pack").archive;
  const source = await execa("npm", ["config", "get", "registry"], { cwd: root, cancelSignal: signal });
  const options = ["--prefix", bare, "--registry", source.stdout, "--no-audit", "--no-fund"];
  await run(["npm", "install", "--global", ...options, archive], {
    cwd: bare,
    env: bareEnvironment(bare),
    onLine,
  });
  const program = join(bare, "bin/brig");
  if (!(await realpath(program)).startsWith(`${bare}/`))
    throw new ReleaseProblem(`${program} is not the installed one`, {
      hint: "is a link to the checkout in npm's prefix?",
    });
  const { stdout } = await run([program, "--version"], { cwd: bare, env: bareEnvironment(bare), onLine });
  if (stdout === manifest.version) return { version: stdout };
  throw new ReleaseProblem(`the installed brig says that it is ${stdout}`, {
    hint: `it has to be ${manifest.version}`,
  });
}

async function demo({ bare, found }, onLine) {
  required(found.install, "install");
  const argv = [join(bare, "bin/brig"), "demo", "--json"];
  const { stdout } = await run(argv, { cwd: bare, env: bareEnvironment(bare), onLine });
  const last = JSON.parse(stdout.split("\n").at(-1));
  if (last.type !== "demo.ended")
    throw new ReleaseProblem("brig demo did not end as it does", { hint: stdout.slice(-500) });
  const { start_ms, tool_calls, median_call_ms } = last;
  return { start_ms, tool_calls, median_call_ms };
}

/** Writes what the images are built of, for each architecture. The packages in it are compared with their hashes. */
async function prepareImages(_, onLine) {
  const [{ completeFiles, readBuildContext }, { imageDefinitions }, { packTar }] = await Promise.all([
    import("../dist/sandbox/images/build-context.js"),
    import("../dist/sandbox/images/definition.js"),
    import("../dist/sandbox/docker/calls/tar.js"),
  ]);
  await mkdir(target, { recursive: true });
  const contexts = [];
  for (const name of ["base", "toolbox"]) {
    for (const architecture of architectures) {
      onLine(`${name} for ${architecture}`);
      const context = await readBuildContext(imageDefinitions[name], architecture);
      const file = join(target, `${name}-${architecture}.tar`);
      await pipeline(packTar(await completeFiles(context, signal)), createWriteStream(file), { signal });
      contexts.push({ name, architecture, file, tag: context.tag });
    }
  }
  return { contexts };
}

async function publish(context, onLine) {
  for (const command of publishCommands(context)) await run(["sh", "-ec", command], { cwd: root, onLine });
}

/** Images first: a package whose images are missing is worse than images without a package. */
function publishCommands({ manifest }) {
  const { name: packageName, version } = manifest;
  const images = ["base", "toolbox"].flatMap((name) => {
    const tag = `${registry}/${name}:${version}`;
    const each = architectures.flatMap((architecture) => [
      `docker build --platform linux/${architecture} --tag ${tag}-${architecture} - <${folder}/${name}-${architecture}.tar`,
      `docker push ${tag}-${architecture}`,
    ]);
    const all = architectures.map((architecture) => `${tag}-${architecture}`).join(" ");
    return [...each, `docker manifest create --amend ${tag} ${all}`, `docker manifest push ${tag}`];
  });
  const archive = `./${folder}/${packageName}-${version}.tgz`;
  return [...images, `npm publish ${archive}`, `git tag v${version}`, `git push origin v${version}`];
}

/** What a machine has on which nobody has worked yet: programs, the address of the engine, and how it reaches the network. */
function bareEnvironment(home) {
  const given = ["DOCKER_HOST", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS", "LANG"];
  const kept = given.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : []));
  const path = [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter);
  return { ...Object.fromEntries(kept), HOME: home, PATH: path };
}

async function run([program, ...argv], { onLine, ...options }) {
  const child = execa(program, argv, {
    ...options,
    extendEnv: options.env === undefined,
    stdin: "ignore",
    cancelSignal: signal,
    all: true,
  });
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (bytes) => onLine(String(bytes).trimEnd().split("\n").at(-1)));
  try {
    return await child;
  } catch (cause) {
    throw new ReleaseProblem(`${program} ${argv.join(" ")} failed`, {
      hint: cause.all?.split("\n").slice(-30).join("\n"),
      cause,
    });
  }
}

function required(found, step) {
  if (found !== undefined) return found;
  throw new ReleaseProblem(`this needs the step ${step}`, {
    hint: `do not skip ${step}, or skip this one too`,
  });
}
