import type { CliContext } from "../../command/index.js";
import { write, writeJson, writeTable } from "../../command/index.js";
import { formatBytes } from "../../lib/bytes.js";
import { visibleLine } from "../../lib/terminal/visible-line.js";
import type { Engine } from "../../sandbox/index.js";
import { BuiltImageStore, listImages } from "../../sandbox/index.js";

/** Lists brig's own images, and then those that it built from Dockerfiles: used longest ago first, as they are removed. */
export async function listAllImages(
  engine: Engine,
  { json = false }: { json?: boolean | undefined },
  { stdout }: CliContext,
): Promise<void> {
  const own = await listImages(engine);
  const built = await new BuiltImageStore(engine).list();
  if (json) {
    const asListed = built.map(({ id, tag, builtFor, sizeBytes, createdAt, task, lastUsedAt }) => {
      return { name: builtFor, id, tags: [tag], sizeBytes, createdAt, isCurrent: true, task, lastUsedAt };
    });
    return await writeJson(stdout, [...own, ...asListed]);
  }
  if (own.length + built.length === 0)
    return await write(stdout, "no images; build them with: brig image build\n");
  const rows = [
    ...own.map(({ name, tags, sizeBytes, createdAt, isCurrent }) => [
      name,
      tags.join(" ") || "(untagged)",
      formatBytes(sizeBytes),
      minute(createdAt),
      isCurrent ? "current" : "out of date",
    ]),
    ...built.map(({ task, tag, builtFor, sizeBytes, createdAt, lastUsedAt }) => [
      builtFor,
      tag,
      formatBytes(sizeBytes),
      minute(createdAt),
      visibleLine(`used ${minute(lastUsedAt)}${task === "" ? "" : `, first for ${task}`}`),
    ]),
  ];
  await writeTable(stdout, [["NAME", "TAGS", "SIZE", "CREATED", "STATE"], ...rows]);
}

function minute(time: Date): string {
  return time.toISOString().slice(0, 16).replace("T", " ");
}
