import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Collects the licences of the packages whose code a build includes. */
export class Licences {
  #modules = new Set();

  /** A plugin for the build. */
  plugin() {
    return {
      name: "licences",
      generateBundle: (_options, bundle) => {
        const chunks = Object.values(bundle).filter(({ type }) => type === "chunk");
        for (const id of chunks.flatMap(({ moduleIds }) => moduleIds)) this.#modules.add(id);
      },
    };
  }

  /** Returns the licence texts. Throws if a package names no licence. */
  async text() {
    const homes = new Set([...this.#modules].map(packageHome).filter((home) => home !== null));
    const packages = await Promise.all([...homes].map(readLicence));
    const sorted = packages.toSorted((a, b) => (a.title < b.title ? -1 : 1));
    // One package can lie in several places in the same version.
    const texts = new Set(sorted.map(({ title, text }) => `${title}\n\n${text.trim()}\n`));
    return `brig's bundles contain code of these packages.\n\n${[...texts].join(`\n${"-".repeat(80)}\n\n`)}`;
  }
}

/** The directory of the package that a module belongs to; null for modules of brig or of the build itself. */
function packageHome(id) {
  return /^\0?(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? null;
}

async function readLicence(home) {
  const { name, version, license } = JSON.parse(await readFile(join(home, "package.json"), "utf8"));
  const file = (await readdir(home)).find((entry) => /^(licen[cs]e|copying)/i.test(entry));
  if (file === undefined && typeof license !== "string")
    throw new Error(`${name} in ${dirname(home)} names no licence`);
  const text = file === undefined ? `Licence: ${license}` : await readFile(join(home, file), "utf8");
  return { title: `${name} ${version} (${license})`, text };
}
