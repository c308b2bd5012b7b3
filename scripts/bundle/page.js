import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { build } from "rolldown";

/** Where the pages are that brig shows, and what each is called in `dist`. */
export const pages = { "view-page": "src/batch/report/page", "serve-page": "src/services/serve/page" };

/**
 * Compiles a page into one value: its code, its style, and the hashes that its content security policy allows. A page has no other files,
 * so that it opens from disk.
 */
export async function compilePage(root, folder, licences) {
  const { output } = await build({
    cwd: root,
    platform: "browser",
    input: { page: join(folder, "main.tsx") },
    write: false,
    transform: { target: "es2023" },
    tsconfig: join(root, folder, "tsconfig.json"),
    plugins: [licences.plugin()],
    output: { format: "iife", minify: true, codeSplitting: false },
    logLevel: "warn",
  });
  // A browser would end the element at such a text.
  const script = output[0].code.replaceAll("</script", "<\\/script").replaceAll("<!--", "<\\!--");
  const styles = ["src/lib/page", folder].map((place) => readFile(join(root, place, "style.css"), "utf8"));
  const style = (await Promise.all(styles)).join("").replace(/\n\s*/g, " ");
  return { script, style, scriptHash: hashOf(script), styleHash: hashOf(style) };
}

function hashOf(text) {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}
