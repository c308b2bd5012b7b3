// Prints an output of the step: a hash of all that brig's images are made of, which is the key of their cache.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const images = join(process.argv[2] ?? "", "images");
const hash = createHash("sha256");
const files = readdirSync(images, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath ?? entry.path, entry.name))
  .sort();
for (const file of files) hash.update(`${file.slice(images.length)}\0`).update(readFileSync(file));
console.log(`images=${hash.digest("hex").slice(0, 32)}`);
