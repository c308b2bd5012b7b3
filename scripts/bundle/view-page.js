import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "rolldown";

/**
 * Compiles the page of `brig view` into one value: its code, its style, and the hashes that its content security policy allows. The
 * page has no other files, so that it opens from disk.
 */
export async function compileViewPage(root, licences) {
  const { output } = await build({
    cwd: root,
    platform: "browser",
    input: { page: "src/batch/report/page/main.tsx" },
    write: false,
    transform: { target: "es2023" },
    tsconfig: join(root, "src/batch/report/page/tsconfig.json"),
    plugins: [licences.plugin()],
    output: { format: "iife", minify: true, codeSplitting: false },
    logLevel: "warn",
  });
  // A browser would end the element at such a text.
  const script = output[0].code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const style = (await readFile(join(root, "src/batch/report/page/style.css"), "utf8")).replace(
    /\n\s*/g,
    " ",
  );
  return { script, style, scriptHash: hashOf(script), styleHash: hashOf(style) };
}

function hashOf(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
