import { createReadStream } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { aptInstall, mustNotInstall } from "./apt.js";
import { run } from "./run.js";

const suite = "bookworm";

/** Documentation that Debian's own slim images leave out, too. */
const excludedPaths = ["doc", "groff", "info", "linda", "lintian", "locale", "man"].map(
  (name) => `/usr/share/${name}`,
);

/** Returns the name of a Debian image for brig's images: one that the engine has or can pull, or else one that is built here. */
export async function provideDebian(engine, { arch, onProgress = () => undefined, signal }) {
  const { ownDebian, provideParent } = await import("../../dist/sandbox/images/ensure.js");
  try {
    return await provideParent(engine, { arch, onProgress, signal });
  } catch (error) {
    if (error.code !== "image.build-failed") throw error;
  }
  onProgress("no registry answers; building Debian's base system from its package archive");
  await importDebian(engine, ownDebian, { arch, onLine: onProgress, signal });
  return ownDebian;
}

/** Builds a minimal Debian root file system from Debian's package archive, and imports it into the engine. */
export async function importDebian(engine, tag, { arch, onLine, signal }) {
  const hostArch = process.arch === "x64" ? "amd64" : process.arch;
  if (arch !== hostArch) throw cannotBuild(`the engine's architecture is ${arch}, and this machine's is not`);
  const directory = await mkdtemp(join(tmpdir(), "brig-"));
  try {
    const tar = join(directory, "debian.tar");
    const bootstrap = await chooseBootstrap({ onLine, signal });
    await bootstrap(tar, { arch, onLine, signal });
    await engine.importImage(createReadStream(tar), tag);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function chooseBootstrap({ onLine, signal }) {
  if (await runs("mmdebstrap")) return mmdebstrap;
  const isRoot = process.getuid?.() === 0;
  if (isRoot && (await runs("debootstrap"))) return debootstrap;
  if (!isRoot || mustNotInstall() || !(await runs("apt-get")))
    throw cannotBuild("mmdebstrap is not installed");
  onLine("installing mmdebstrap with apt");
  await aptInstall(["mmdebstrap", "debian-archive-keyring"], { onLine, signal });
  return mmdebstrap;
}

async function runs(program) {
  return await run([program, "--version"], { onLine: () => undefined }).then(
    () => true,
    () => false,
  );
}

async function mmdebstrap(tar, { arch, onLine, signal }) {
  const exclusions = excludedPaths.map((path) => `--dpkgopt=path-exclude=${path}/*`);
  // As in Debian's own images: dpkg does not wait for the disk after each file, and apt fetches no translations.
  const asInDebian = ["--dpkgopt=force-unsafe-io", '--aptopt=Acquire::Languages "none"'];
  await run(
    [
      ...["mmdebstrap", "--variant=minbase", `--architectures=${arch}`, ...exclusions, ...asInDebian],
      ...["--dpkgopt=path-include=/usr/share/doc/*/copyright", suite, tar],
    ],
    { onLine, signal },
  );
}

async function debootstrap(tar, { arch, onLine, signal }) {
  const root = `${tar}.root`;
  const archive = "http://deb.debian.org/debian";
  await run(["debootstrap", "--variant=minbase", `--arch=${arch}`, suite, root, archive], { onLine, signal });
  await writeFile(join(root, "etc/apt/sources.list"), sourcesList(archive));
  await rm(join(root, "var/cache/apt/archives"), { recursive: true, force: true });
  await Promise.all(excludedPaths.map((path) => rm(join(root, path), { recursive: true, force: true })));
  await run(["tar", "--numeric-owner", "-C", root, "-cf", tar, "."], { onLine, signal });
}

function sourcesList(archive) {
  return [
    `deb ${archive} ${suite} main`,
    `deb ${archive} ${suite}-updates main`,
    `deb http://security.debian.org/debian-security ${suite}-security main`,
    "",
  ].join("\n");
}

function cannotBuild(why) {
  return Object.assign(new Error(`debian:bookworm-slim can be neither pulled nor built here: ${why}`), {
    hint: "docker pull debian:bookworm-slim, or: sudo apt-get install -y mmdebstrap && node scripts/setup.mjs",
  });
}
