import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { readTextFile } from "../../lib/bounded-file.js";
import { parseJson } from "../../lib/json/parse-json.js";

/** A setting that is proposed for a project, and the file of the project because of which. */
interface Proposed {
  value: string;
  reason: string;
}

export interface ProjectProposal {
  /** Options that name the image: `--container-image`, `--dockerfile` or `--devcontainer`. */
  image: Proposed & { option: "--container-image" | "--dockerfile" | "--devcontainer" };
  /** A command of the shell that installs what the project depends on. */
  setup: Proposed | null;
  /** The hosts that this command reaches. */
  setupNetwork: Proposed | null;
  /** The network of all other commands. */
  network: Proposed;
  /** Whole sentences about what brig has seen and proposes nothing for. */
  notes: string[];
}

const MAX_FILE_BYTES = 1024 * 1024;
const MAX_WORKFLOWS = 50;

interface Ecosystem {
  /** The files by which it is known; the first that is there is the reason. */
  files: readonly string[];
  image: string;
  hosts: string;
  /** Where what is installed stays. */
  place: "the workspace" | "HOME";
  /** By the file that calls for it, the most exact first. */
  setups: readonly (readonly [file: string, command: string])[];
}

/** In the order in which they are asked: where a project has several, the first names the image. */
const ECOSYSTEMS: readonly Ecosystem[] = [
  {
    files: ["Cargo.toml"],
    image: "brig/rust",
    hosts: "@crates",
    place: "HOME",
    setups: [
      ["Cargo.lock", "cargo fetch --locked"],
      ["Cargo.toml", "cargo fetch"],
    ],
  },
  {
    files: ["go.mod"],
    image: "brig/go",
    hosts: "@go",
    place: "HOME",
    setups: [["go.mod", "go mod download"]],
  },
  {
    files: ["package.json"],
    image: "brig/node",
    hosts: "@npm",
    place: "the workspace",
    setups: [
      ["package-lock.json", "npm ci"],
      ["npm-shrinkwrap.json", "npm ci"],
      ["pnpm-lock.yaml", "npx --yes pnpm install --frozen-lockfile"],
      ["yarn.lock", "npx --yes yarn install --frozen-lockfile"],
      ["package.json", "npm install"],
    ],
  },
  {
    files: ["pyproject.toml", "requirements.txt", "setup.py"],
    image: "brig/python",
    hosts: "@pypi",
    place: "the workspace",
    setups: [
      ["requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"],
      ["pyproject.toml", "python3 -m venv .venv && .venv/bin/pip install -e ."],
      ["setup.py", "python3 -m venv .venv && .venv/bin/pip install -e ."],
    ],
  },
];

/** Looks at the files of a project, which anybody may have written: of what is in them, no word is proposed. */
export async function proposeFor(directory: string): Promise<ProjectProposal> {
  const has = async (name: string) =>
    (await lstat(join(directory, name)).catch(() => null))?.isFile() === true;
  const found: { ecosystem: Ecosystem; file: string }[] = [];
  for (const ecosystem of ECOSYSTEMS)
    for (const file of ecosystem.files)
      if (found.at(-1)?.ecosystem !== ecosystem && (await has(file))) found.push({ ecosystem, file });
  const image = await imageFor(found, has);
  const setups: { command: string; file: string; hosts: string; place: Ecosystem["place"] }[] = [];
  for (const { ecosystem } of image.option === "--devcontainer" ? [] : found) {
    if (ecosystem.hosts === "@npm" && !(await hasDependencies(directory))) continue;
    for (const [file, command] of ecosystem.setups) {
      if (!(await has(file))) continue;
      setups.push({ command, file, hosts: ecosystem.hosts, place: ecosystem.place });
      break;
    }
  }
  const files = setups.map(({ file }) => file).join(" and ");
  const places = [...new Set(setups.map(({ place }) => place))].map((place) =>
    place === "HOME" ? "HOME, where it stays as long as the container" : place,
  );
  return {
    image,
    setup:
      setups.length === 0
        ? null
        : {
            value: setups.map(({ command }) => command).join(" && "),
            reason: `${files} ${setups.length === 1 ? "says" : "say"} what the project depends on; it is installed into ${places.join(" and ")}`,
          },
    setupNetwork:
      setups.length === 0
        ? null
        : {
            value: `allowlist:${setups.map(({ hosts }) => hosts).join(",")}`,
            reason: "what the set-up downloads comes from there, and from nowhere else",
          },
    network: { value: "none", reason: "building and testing what is installed needs no network" },
    notes: await notesOn(directory, has),
  };
}

async function imageFor(
  found: readonly { ecosystem: Ecosystem; file: string }[],
  has: (name: string) => Promise<boolean>,
): Promise<ProjectProposal["image"]> {
  for (const file of [".devcontainer/devcontainer.json", ".devcontainer.json"])
    if (await has(file))
      return {
        option: "--devcontainer",
        value: file,
        reason: `${file} describes the container in which the project is worked on, and its set-up`,
      };
  const [first] = found;
  const reason = (file: string) => `${file} is the file of a project in that language`;
  // A Dockerfile is as often for running the project as for working on it, so a language comes first.
  if (first !== undefined)
    return { option: "--container-image", value: first.ecosystem.image, reason: reason(first.file) };
  for (const file of ["Dockerfile", "Containerfile"])
    if (await has(file))
      return {
        option: "--dockerfile",
        value: file,
        reason: `${file} installs what the project needs, and nothing else says what that is`,
      };
  return {
    option: "--container-image",
    value: "brig/base",
    reason: "nothing in the directory says what it needs; this image has Node, Python and a C compiler",
  };
}

/** A project without any has nothing to install. One whose file cannot be read may have some. */
async function hasDependencies(directory: string): Promise<boolean> {
  const read = await readTextFile(join(directory, "package.json"), MAX_FILE_BYTES);
  const parsed = read.kind === "text" ? parseJson(read.text) : undefined;
  if (typeof parsed !== "object" || parsed === null) return true;
  return ["dependencies", "devDependencies", "optionalDependencies", "workspaces"].some((name) => {
    const value: unknown = Object.hasOwn(parsed, name)
      ? (parsed as Record<string, unknown>)[name]
      : undefined;
    return typeof value === "object" && value !== null && Object.keys(value).length > 0;
  });
}

async function notesOn(directory: string, has: (name: string) => Promise<boolean>): Promise<string[]> {
  const notes: string[] = [];
  if (await has("Dockerfile"))
    notes.push("There is a Dockerfile: brig exec --dockerfile Dockerfile uses the image that it describes.");
  const workflows = await readdir(join(directory, ".github/workflows")).catch(() => []);
  const ofCi = [
    ...workflows.slice(0, MAX_WORKFLOWS).map((name) => `.github/workflows/${name}`),
    ...[".gitlab-ci.yml", "Jenkinsfile"],
  ];
  for (const file of ofCi) {
    if (!(await has(file)) || !/^[\w./-]+$/.test(file)) continue;
    const read = await readTextFile(join(directory, file), MAX_FILE_BYTES);
    if (read.kind !== "text") continue;
    if (/\bapt(?:-get)? install\b|\bapk add\b/.test(read.text))
      notes.push(
        `${file} installs packages of the system: put them into a Dockerfile that begins with FROM brig/base.`,
      );
    if (/^\s+services:\s*$/m.test(read.text))
      notes.push(
        `${file} starts services such as databases, which a sandbox has only if a command in it starts them.`,
      );
  }
  return notes;
}
