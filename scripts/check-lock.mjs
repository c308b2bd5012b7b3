// Refuses a lock file that does not pin what it names: each package needs the hash of its archive, or whatever a registry sends
// is installed; and it may lead to no other place than the public registry. Takes the file to look at, or this checkout's own.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const file = process.argv[2] ?? fileURLToPath(new URL("../package-lock.json", import.meta.url));
const { packages } = JSON.parse(await readFile(file, "utf8"));

const faults = Object.entries(packages)
  .filter(([path]) => path !== "")
  .flatMap(([path, entry]) => faultsOf(entry).map((fault) => `${path}: ${fault}`));
for (const fault of faults) console.error(`${file}: ${fault}`);
if (faults.length > 0)
  console.error("make it again: rm package-lock.json && npm install --package-lock-only");
process.exitCode = faults.length > 0 ? 1 : 0;

function faultsOf({ integrity, resolved }) {
  return [
    ...(/^sha512-/.test(integrity ?? "") ? [] : ["has no sha512 integrity"]),
    ...(resolved === undefined || resolved.startsWith("https://registry.npmjs.org/")
      ? []
      : [`comes from ${resolved}`]),
  ];
}
