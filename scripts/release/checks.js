// What a release needs that can be seen in files. Each check throws a ReleaseProblem, or returns what it has found.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Why there can be no release, and what to do about it. */
export class ReleaseProblem extends Error {
  name = "ReleaseProblem";

  constructor(message, { hint, cause }) {
    super(message, { cause });
    this.hint = hint;
  }
}

/** The version of the package, which the lock file has to name too. */
export function checkVersion(manifest, lock) {
  const { version } = manifest;
  if (!/^\d+\.\d+\.\d+(?:-[\w.-]+)?$/.test(version))
    throw new ReleaseProblem(`${version} is not a version`, {
      hint: "set one with: npm version --no-git-tag-version 1.2.3",
    });
  const locked = [lock.version, lock.packages[""].version];
  if (locked.some((one) => one !== version))
    throw new ReleaseProblem(
      `package.json has the version ${version}, package-lock.json has ${locked.join(" and ")}`,
      { hint: "run: npm install --package-lock-only" },
    );
  return version;
}

/** The entry of a version in a changelog of the form of keepachangelog.com: its date and its text. */
export function changelogEntry(text, version) {
  const entries = text.split(/^## /m).slice(1);
  const entry = entries.find((one) => one.startsWith(`[${version}]`));
  const form = `begin one with: ## [${version}] - ${new Date().toISOString().slice(0, 10)}`;
  if (entry === undefined)
    throw new ReleaseProblem(`CHANGELOG.md has no entry for ${version}`, { hint: form });
  const [heading, ...lines] = entry.split("\n");
  const date = /^\[.*\] - (\d{4}-\d{2}-\d{2})$/.exec(heading)?.[1];
  if (date === undefined || Number.isNaN(Date.parse(date)))
    throw new ReleaseProblem(`the entry for ${version} in CHANGELOG.md has no date`, { hint: form });
  if (!lines.some((line) => /^- \S/.test(line)))
    throw new ReleaseProblem(`the entry for ${version} in CHANGELOG.md says nothing`, {
      hint: 'write what has changed for users, as "- …" below "### Added", "### Changed", "### Fixed" or "### Removed"',
    });
  return { date, text: lines.join("\n").trim() };
}

/** That npm publishes the package for everybody, with a statement that says where it was built. */
export function checkSettings({ private: isPrivate, publishConfig = {}, repository, files, license }) {
  const wanted = { access: "public", provenance: true };
  const wrong = Object.keys(wanted).filter((key) => publishConfig[key] !== wanted[key]);
  if (wrong.length > 0)
    throw new ReleaseProblem(`publishConfig in package.json lacks ${wrong.join(" and ")}`, {
      hint: `it has to be ${JSON.stringify(wanted)}`,
    });
  const missing = Object.entries({ repository: repository?.url, files, license }).filter(
    ([, value]) => !value,
  );
  if (isPrivate || missing.length > 0)
    throw new ReleaseProblem(
      isPrivate
        ? "the package is private"
        : `package.json names no ${missing.map(([key]) => key).join(", no ")}`,
      { hint: "npm compares the repository with the one that has built the package" },
    );
  return publishConfig;
}

/** That `third-party-licences.txt` names each package whose code is in a bundle, as the source maps of the last build say. */
export async function checkLicences(root) {
  const dist = join(root, "dist");
  const entries = await readdir(dist, { recursive: true, withFileTypes: true });
  const maps = entries
    .filter((entry) => /\.m?js\.map$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name));
  const homes = new Set((await Promise.all(maps.map(packagesIn))).flat());
  const text = await readFile(join(dist, "third-party-licences.txt"), "utf8");
  const titles = new Set(text.match(/^.+ \d+\.\d+\.\d+\S* \(.+\)$/gm) ?? []);
  const unnamed = [];
  for (const home of homes) {
    const { name, version, license } = JSON.parse(await readFile(join(root, home, "package.json"), "utf8"));
    if (!titles.has(`${name} ${version} (${license})`)) unnamed.push(`${name} ${version}`);
  }
  if (homes.size === 0) throw new ReleaseProblem("dist has no bundles", { hint: "run: npm run build" });
  if (unnamed.length > 0)
    throw new ReleaseProblem(`dist/third-party-licences.txt does not name ${unnamed.toSorted().join(", ")}`, {
      hint: "scripts/bundle/licences.js collects them: begin there, then run: npm run build",
    });
  return homes.size;
}

/** The directories of the packages whose files a source map names, such as "node_modules/zod". */
async function packagesIn(file) {
  const { sources } = JSON.parse(await readFile(file, "utf8"));
  return sources.flatMap(
    (source) => /(?:node_modules\/(?:@[^/]+\/)?[^/]+\/)+/.exec(source)?.[0].slice(0, -1) ?? [],
  );
}
